// Generates 3-D volumes like those of a medical scanner, with labels for their contents.
#ifndef EXAMPLES_TORCH_COMMON_VOLUMES_HPP
#define EXAMPLES_TORCH_COMMON_VOLUMES_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pipeline {

/// Volumes in a directory, generated if missing. The destructor removes a temporary directory.
class volume_files {
 public:
  /// Generates `count` image files, float32 tensors [1, depth, height, width] with mean 0 and
  /// standard deviation 1, and as many label files, uint8 tensors with 1 for an organ, 2 for a
  /// tumor in it and 0 elsewhere. Reports that on stdout.
  /// @param directory  directory of the files; empty: a temporary directory.
  /// @param edge_voxels  minimum length of a volume's edges, which are up to 50 % longer. Errors:
  /// std::exception, one line for the user.
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
