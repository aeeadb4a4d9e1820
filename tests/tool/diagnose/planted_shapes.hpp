// Lists the shapes of simulated pipelines, and the faults that each of them may have.
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

/// Returns all shapes of loaders with workers, most of which have one fault.
const std::vector<planted_shape>& planted_loaders();
/// Returns all other shapes: stages, pools, tasks and requests.
const std::vector<planted_shape>& planted_stages();

inline int any(generator& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}
inline double any(generator& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

/// Returns durations with a random median from the given range and a random sigma.
inline durations any_spread(generator& random, double low_ms, double high_ms, double max_sigma) {
  // `median_ms` is computed in a statement of its own, because the order in which function
  // arguments are evaluated is unspecified.
  const double median_ms = any(random, low_ms, high_ms);
  return spread(median_ms, any(random, 0.0, max_sigma));
}

/// Returns a loader with workers, with random durations and numbers.
worker_loader some_workers(generator& random);

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_PLANTED_SHAPES_HPP
