// Provides random numbers that are the same with every standard library.
#ifndef IMAGENET_RANDOM_SOURCE_HPP
#define IMAGENET_RANDOM_SOURCE_HPP

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace imagenet {

/// The random number generator SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators, OOPSLA 2014). It has its own distributions, because the results of those in <random>
/// differ between standard libraries.
class random_source {
 public:
  random_source() = default;
  /// Creates a source that is independent of sources with another seed, epoch or index.
  explicit random_source(std::uint64_t seed, std::uint64_t epoch = 0, std::uint64_t index = 0)
      : state_{mixed(mixed(mixed(seed) + epoch) + index)} {}

  std::uint64_t next() { return mixed(state_ += golden_ratio); }

  /// Returns a number in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }
  /// Returns a number in [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Returns a number in [0, count). `count` must be much smaller than 2^64; otherwise, some
  /// numbers would be more likely than others.
  std::uint64_t below(std::uint64_t count) { return next() % count; }

 private:
  static constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15U;

  static constexpr std::uint64_t mixed(std::uint64_t z) {
    z += golden_ratio;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }

  std::uint64_t state_ = 0;
};

/// Shuffles `values` (Fisher and Yates).
template <class T>
void shuffle(std::vector<T>& values, random_source& random) {
  for (std::size_t left = values.size(); left > 1; --left) {
    std::swap(values[left - 1], values[random.below(left)]);
  }
}

}  // namespace imagenet

#endif  // IMAGENET_RANDOM_SOURCE_HPP
