// Generates JPEG files whose sizes are distributed like ImageNet's, for users without ImageNet.
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

/// Writes `count` JPEGs to directory/class_<n>/, using all CPUs. The same seed results in the same
/// images. The directory is created under another name, and renamed when all images exist. Errors:
/// std::runtime_error that names the file that could not be written.
void make_images(const std::string& directory, std::size_t count, std::uint64_t seed);

/// Measures the generated files, to compare them with the intended sizes. Errors: those of
/// list_images().
file_sizes measure_images(const std::string& directory);

}  // namespace imagenet

#endif  // IMAGENET_SYNTHETIC_HPP
