// The shapes of pipelines that are planted, and what may be wrong with each.
#ifndef LOTUS_TESTS_PLANTED_SHAPES_HPP
#define LOTUS_TESTS_PLANTED_SHAPES_HPP

#include <functional>
#include <random>
#include <vector>

#include "tool/diagnose/planted_pipelines.hpp"

namespace lotus::tool_test {

struct planted_shape {
  const char* name;
  std::function<void(planted&, generator&)> plant;
  int times;
};

/// Made by workers, with every fault.
const std::vector<planted_shape>& planted_loaders();
/// All others: stages, pools, tasks, requests.
const std::vector<planted_shape>& planted_stages();

inline int any(generator& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}
inline double any(generator& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

/// With a median between the two, and a sigma up to the third.
inline durations any_spread(generator& random, double low_ms, double high_ms, double most_sigma) {
  // One after the other: the order of arguments is the compiler's.
  const double median_ms = any(random, low_ms, high_ms);
  return spread(median_ms, any(random, 0.0, most_sigma));
}

/// Durations and numbers as they come.
worker_loader some_workers(generator& random);

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_PLANTED_SHAPES_HPP
