// Generates JPEG files, for users without ImageNet. Their sizes are distributed like ImageNet's.
#ifndef IMAGENET_SYNTHETIC_HPP
#define IMAGENET_SYNTHETIC_HPP

#include <cstddef>
#include <cstdint>
#include <string>

namespace imagenet {

/// Mean and standard deviation of the file sizes in ImageNet, in bytes.
constexpr double mean_bytes = 111e3;
constexpr double std_bytes = 133e3;

struct file_sizes {
  std::size_t count = 0;
  double mean_bytes = 0;
  double std_bytes = 0;  ///< standard deviation of the file sizes
};

/// Writes `count` JPEG files to directory/class_<n>/, using all CPUs. The same seed gives the same
/// images. While the images are written, the directory has a temporary name, so that an interrupted
/// run leaves no incomplete directory. Throws std::runtime_error, which names the file that could
/// not be written.
void make_images(const std::string& directory, std::size_t count, std::uint64_t seed);

/// Measures the sizes of the generated files, to compare them with the intended sizes. Throws the
/// errors of list_images().
file_sizes measure_images(const std::string& directory);

}  // namespace imagenet

#endif  // IMAGENET_SYNTHETIC_HPP
