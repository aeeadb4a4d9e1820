// Provides random numbers for transforms.
#ifndef EXAMPLES_TORCH_COMMON_DICE_HPP
#define EXAMPLES_TORCH_COMMON_DICE_HPP

#include <atomic>
#include <cstdint>

#include "imagenet/random_source.hpp"

namespace pipeline {

/// Returns this thread's source of random numbers. A transform must not own a source, because the
/// loader copies the transform for each worker, and all copies would produce the same numbers.
inline imagenet::random_source& dice() {
  static std::atomic<std::uint64_t> threads{0};
  thread_local imagenet::random_source own{threads++};
  return own;
}

}  // namespace pipeline

#endif  // EXAMPLES_TORCH_COMMON_DICE_HPP
