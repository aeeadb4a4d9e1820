// Runs a synthetic loader whose threads really compute and sleep, for known times.
#ifndef LOTUS_BENCH_REAL_LOADER_HPP
#define LOTUS_BENCH_REAL_LOADER_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// The work of one operation on each batch. The times are random, but the same in every run.
struct real_operation {
  std::string name;
  double cpu_ms = 0;
  double sleep_ms = 0;
  double sigma = 0;  ///< sigma of the log-normal distribution of cpu_ms and sleep_ms
  /// Maximum number of calls that run at the same time, in the order in which they arrive; 0: no
  /// limit. With 1, the operation is like a lock or a device with one channel.
  int at_once = 0;
  int threads = 0;  ///< of this operation as a stage; 0: as many as the loader's `workers`
};

struct real_loader {
  std::vector<real_operation> operations;
  int workers = 2;
  int prefetch = 2;  ///< batches in flight per worker
  bool ordered = true;
  /// Whether each operation is a stage with threads of its own and a queue.
  bool stages = false;
  int batches = 120;
  double step_cpu_ms = 0;
  double step_sleep_ms = 0;
  int neighbours = 0;  ///< number of processes that each keep a CPU busy all the time
};

/// Runs the loader in a process of its own, which records below `folder`. Throws
/// std::runtime_error.
void run_real(const real_loader& loader, const std::string& folder);

}  // namespace bench

#endif  // LOTUS_BENCH_REAL_LOADER_HPP
