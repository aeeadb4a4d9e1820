// Simulates loaders in which a given batch takes the same time in every simulation, so that the
// effect of a change is known.
#ifndef LOTUS_TESTS_SIMULATED_TRUTH_HPP
#define LOTUS_TESTS_SIMULATED_TRUTH_HPP

#include <cstdint>

#include "tool/diagnose/planted_answer.hpp"
#include "tool/diagnose/planted_logs.hpp"
#include "tool/diagnose/planted_pipelines.hpp"
#include "tool/diagnose/planted_shapes.hpp"

namespace lotus::tool_test {

struct truthful_loader {
  int workers = 2;
  int prefetch = 2;
  int batches = 80;
  int epochs = 1;
  std::int64_t spawn_ns = 0;
  double make_ms = 10;
  double make_sigma = 0.3;
  double step_ms = 5;
  double step_sigma = 0.2;
  unsigned seed = 1;

  /// Returns durations in a fixed order: the k-th duration is the same in every simulation.
  static durations drawn(double median_ms, double sigma, unsigned seed) {
    return [=, random = generator(seed)](generator&) mutable {
      return spread(median_ms, sigma)(random);
    };
  }

  consumer_truth simulate_into(planted_logs& logs) const {
    worker_loader loader;
    loader.workers = workers;
    loader.prefetch = prefetch;
    loader.batches = batches;
    loader.epochs = epochs;
    loader.spawn_ns = spawn_ns;
    loader.make = drawn(make_ms, make_sigma, seed);
    loader.step = drawn(step_ms, step_sigma, seed + 1);
    generator unused(0);
    return simulate(loader, logs, unused);
  }

  /// Returns the batches per second over the whole run.
  double rate() const { return batches * 1e9 / whole_ns(); }
  /// Returns the time until the end of the last step; this step is assumed to be as long as most
  /// steps.
  double whole_ns() const {
    planted_logs logs;
    return static_cast<double>(simulate_into(logs).last_hand_over_ns) + 1e6 * step_ms;
  }
};

inline truthful_loader some_truthful(generator& random) {
  truthful_loader l;
  l.workers = any(random, 1, 6);
  l.prefetch = any(random, 1, 4);
  l.batches = any(random, 60, 120);
  l.make_ms = any(random, 2.0, 40.0);
  l.make_sigma = any(random, 0.0, 0.8);
  l.step_ms = any(random, 0.5, 15.0);
  l.step_sigma = any(random, 0.0, 0.4);
  l.spawn_ns = any(random, 0, 3) == 0 ? any(random, 50, 2000) * ms : 0;
  l.seed = static_cast<unsigned>(any(random, 1, 1'000'000));
  return l;
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_SIMULATED_TRUTH_HPP
