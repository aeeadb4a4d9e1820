// A set of JPEGs whose file sizes spread like ImageNet's, for those who have no ImageNet.
#ifndef IMAGENET_SYNTHETIC_HPP
#define IMAGENET_SYNTHETIC_HPP

#include <cstddef>
#include <cstdint>
#include <string>

namespace imagenet {

/// ImageNet's file sizes.
constexpr double mean_bytes = 111e3;
constexpr double std_bytes = 133e3;

struct file_sizes {
  std::size_t count = 0;
  double mean_bytes = 0;
  double std_bytes = 0;  ///< the population's
};

/// Writes `count` JPEGs to directory/class_<n>/, on all processors. The same seed gives the same
/// images. The directory appears only when it is complete.
/// Errors: std::runtime_error, naming what could not be written.
void make_images(const std::string& directory, std::size_t count, std::uint64_t seed);

/// What was made: to be compared with the aim.
/// Errors: as list_images().
file_sizes measure_images(const std::string& directory);

}  // namespace imagenet

#endif  // IMAGENET_SYNTHETIC_HPP
