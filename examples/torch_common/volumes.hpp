// Generates 3-D volumes like those of a medical scanner, with labels for the voxels.
#ifndef EXAMPLES_TORCH_COMMON_VOLUMES_HPP
#define EXAMPLES_TORCH_COMMON_VOLUMES_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pipeline {

/// A set of volumes in a directory, which are generated if they are missing. The destructor removes
/// the directory if it is temporary.
class volume_files {
 public:
  /// Provides `count` images, float32 tensors [1, depth, height, width] with mean 0 and standard
  /// deviation 1, and as many label files, uint8 tensors in which 1 is an organ, 2 is a tumor in
  /// the organ, and 0 is everything else. Generates files that are missing, and reports on stdout
  /// that it does so. Throws std::exception, whose text is one line for the user.
  /// @param directory  directory of the files; empty: use a temporary directory.
  /// @param edge_voxels  minimum length of a volume's edges, which are up to 50 % longer.
  volume_files(const std::string& directory, std::size_t count, std::int64_t edge_voxels,
               std::uint64_t seed);
  volume_files(const volume_files&) = delete;
  volume_files& operator=(const volume_files&) = delete;
  ~volume_files();

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  volume_files() = default;

  std::string temporary_directory_;
  std::vector<std::string> paths_;
};

}  // namespace pipeline

#endif  // EXAMPLES_TORCH_COMMON_VOLUMES_HPP
