// Random numbers for transforms.
#ifndef EXAMPLES_TORCH_COMMON_DICE_HPP
#define EXAMPLES_TORCH_COMMON_DICE_HPP

#include <atomic>
#include <cstdint>

#include "imagenet/random_source.hpp"

namespace pipeline {

/// This thread's random numbers. A transform cannot hold its own: the loader copies it to each
/// worker, and all of them would throw the same.
inline imagenet::random_source& dice() {
  static std::atomic<std::uint64_t> threads{0};
  thread_local imagenet::random_source own{threads++};
  return own;
}

}  // namespace pipeline

#endif  // EXAMPLES_TORCH_COMMON_DICE_HPP
