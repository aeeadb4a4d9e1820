// Pipelines of every shape, simulated event by event, with what is true of them.
#ifndef LOTUS_TESTS_PLANTED_PIPELINES_HPP
#define LOTUS_TESTS_PLANTED_PIPELINES_HPP

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tool/diagnose/planted_logs.hpp"

namespace lotus::tool_test {

using generator = std::mt19937_64;

/// Draws durations in ns.
using durations = std::function<std::int64_t(generator&)>;
durations constant(double ms);
/// Log-normal about its median.
durations spread(double median_ms, double sigma);

struct stage_truth {
  std::string name;
  double capacity_per_s = 0;
  double busy = 0;
  double starved = 0;
  double blocked = 0;
};

struct batch_truth {
  std::int64_t latency_ns = 0;
  std::int64_t service_ns = 0;
};

struct planted {
  std::string shape;
  planted_logs logs;
  std::set<std::string> checks;                 ///< that must fail
  std::set<std::string> may;                    ///< that may, for the line is thin
  std::vector<stage_truth> stages;              ///< to be compared; of the default loader
  std::map<std::int64_t, batch_truth> batches;  ///< by number
  std::optional<std::string> verdict;           ///< where there can be but one
  std::optional<int> workers;                   ///< at once
  double steady_per_s = 0;                      ///< 0: not compared
};

/// Workers with a queue each; the consumer takes batches in order, and puts others aside.
struct worker_loader {
  int workers = 2;
  int prefetch = 2;  ///< a worker
  int batches = 40;  ///< an epoch
  int epochs = 1;
  std::int64_t pause_ns = 0;  ///< between epochs
  std::int64_t spawn_ns = 0;  ///< until workers begin
  int first_thread = 1;
  int consumer = 0;
  bool new_threads = false;  ///< in each epoch
  durations make = constant(10);
  durations step = constant(5);
  bool consumed_late = false;
  std::int64_t consumed_number = 0;  ///< added to the number that is logged
  std::function<std::int64_t(int batch, std::int64_t step)> change_step;
  /// Logs the making of a batch; made_as_one() if there is none.
  std::function<void(planted_logs&, int thread, std::int64_t i, std::int64_t start,
                     std::int64_t duration)>
      log_making;
};

/// One span and three operations in it.
void made_as_one(planted_logs& logs, int thread, std::int64_t i, std::int64_t start,
                 std::int64_t duration);

/// Where the simulated time ended, and what the consumer did with it.
struct consumer_truth {
  std::int64_t end_ns = 0;
  std::int64_t waits_ns = 0;
  std::int64_t steps_ns = 0;
  std::int64_t first_hand_over_ns = 0;
  std::int64_t last_hand_over_ns = 0;
};
consumer_truth simulate(const worker_loader& loader, planted_logs& logs, generator& random,
                        std::int64_t begin_ns = 0);

struct stage_spec {
  std::string name;
  int threads = 1;
  durations service = constant(1);
  int bound = 4;                 ///< of what lies behind it
  bool new_thread_each = false;  ///< a thread for each item, instead of `threads` that stay
};

/// A chain of stages with bounded queues between, each with threads of its own, and a consumer that
/// takes what comes.
struct stage_chain {
  std::vector<stage_spec> stages;
  int batches = 100;
  durations step = constant(1);
  bool first_is_workers = false;  ///< the first stage is preprocess spans of workers
  int pool = 0;  ///< as many threads serve all stages, each at most as many at once as it has
};
consumer_truth simulate(const stage_chain& chain, planted& to, generator& random);

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_PLANTED_PIPELINES_HPP
