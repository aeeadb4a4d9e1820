// Simulates pipelines of many shapes event by event, and provides the true results.
#ifndef LOTUS_TESTS_PLANTED_PIPELINES_HPP
#define LOTUS_TESTS_PLANTED_PIPELINES_HPP

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tool/diagnose/planted_logs.hpp"

namespace lotus::tool_test {

using generator = std::mt19937_64;

/// Function that draws a random duration in ns.
using durations = std::function<std::int64_t(generator&)>;
durations constant(double ms);
/// Returns durations with a log-normal distribution and this median.
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
  std::set<std::string> checks;  ///< ids of the checks that must fail
  /// Ids of the checks that may fail but need not, because the pipeline is close to the limits of
  /// these checks.
  std::set<std::string> may;
  /// True results of the default loader's stages, which the tool's results are compared with.
  std::vector<stage_truth> stages;
  std::map<std::int64_t, batch_truth> batches;  ///< true results of batches by number
  std::optional<std::string> verdict;  ///< expected verdict; nullopt if several are possible
  std::optional<int> workers;          ///< expected number of simultaneous workers
  double steady_per_s = 0;             ///< throughput in steady state; 0: not compared
};

/// A loader in which each worker has its own queue. The consumer receives batches in order, and
/// buffers batches that arrive early.
struct worker_loader {
  int workers = 2;
  int prefetch = 2;  ///< batches in flight per worker
  int batches = 40;  ///< number of batches per epoch
  int epochs = 1;
  std::int64_t pause_ns = 0;  ///< pause between epochs
  std::int64_t spawn_ns = 0;  ///< time until the workers begin
  int first_thread = 1;
  int consumer = 0;
  bool new_threads = false;  ///< whether each epoch starts new threads
  durations make = constant(10);
  durations step = constant(5);
  bool consumed_late = false;
  /// Number that is added to the batch's number in SBatchConsumed, as if the program passed a wrong
  /// number to LOTUS_BATCH_CONSUMED.
  std::int64_t consumed_number = 0;
  std::function<std::int64_t(int batch, std::int64_t step)> change_step;
  /// Logs the preprocessing of a batch. If this is empty, made_as_one() does so.
  std::function<void(planted_logs&, int thread, std::int64_t i, std::int64_t start,
                     std::int64_t duration)>
      log_preprocessing;
};

/// Logs one preprocessing span with three operations inside.
void made_as_one(planted_logs& logs, int thread, std::int64_t i, std::int64_t start,
                 std::int64_t duration);

/// When the simulation ended, and how the consumer spent its time.
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
  int bound = 4;                  ///< capacity of the queue after the stage
  std::string inside = "Inside";  ///< name of an operation that is `inside_share` of the work
  double inside_share = 0.5;
  /// Whether each item gets its own new thread instead of one of `threads` threads.
  bool new_thread_each = false;
};

/// A chain of stages with bounded queues between them. Each stage has its own threads. The consumer
/// receives batches in any order.
struct stage_chain {
  std::vector<stage_spec> stages;
  int batches = 100;
  durations step = constant(1);
  /// Whether the work of the first stage is recorded as workers' preprocessing.
  bool first_is_workers = false;
  /// Number of threads that all stages share; at most `stage_spec::threads` of them work for a
  /// stage at the same time. If it is 0, each stage has its own threads.
  int pool = 0;
  /// Maximum number of items that are in flight; 0: only the queues limit it.
  int budget = 0;
};
consumer_truth simulate(const stage_chain& chain, planted& to, generator& random);

/// A chain of Read (1 ms), Decode (4 ms) and Pack, with one thread each.
stage_chain read_decode_pack(double pack_ms);

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_PLANTED_PIPELINES_HPP
