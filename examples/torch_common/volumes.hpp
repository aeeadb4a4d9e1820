// 3-D volumes as a scanner makes them, with what is to be found in them.
#ifndef EXAMPLES_TORCH_COMMON_VOLUMES_HPP
#define EXAMPLES_TORCH_COMMON_VOLUMES_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pipeline {

/// Volumes in a directory, made where they are not yet there. Owns it when it is temporary.
class volume_files {
 public:
  /// Says on stdout what it makes: `count` files of an image, [1, depth, height, width] float32 of
  /// mean 0 and standard deviation 1, and as many labels, uint8: 0, an organ 1, a tumour in it 2.
  /// @param directory   where they are kept; empty: in a temporary directory.
  /// @param edge_voxels  the least edge; the edges are up to half as much longer.
  /// Errors: std::exception, one line for the user.
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
