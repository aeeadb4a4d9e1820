// A loader whose work is known, run for real: threads that burn CPU and sleep.
#ifndef LOTUS_BENCH_REAL_LOADER_HPP
#define LOTUS_BENCH_REAL_LOADER_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// What is done to each batch; the amounts are the same in every run.
struct real_operation {
  std::string name;
  double cpu_ms = 0;
  double sleep_ms = 0;
  double sigma = 0;  ///< log-normal about these
  /// So many calls are served at once, first come, first served; 0: all. One: a lock, or a device
  /// with one channel.
  int at_once = 0;
};

struct real_loader {
  std::vector<real_operation> operations;
  int workers = 2;
  int prefetch = 2;  ///< batches out for each worker
  bool ordered = true;
  bool stages = false;  ///< each operation has `workers` threads of its own, with queues between
  int batches = 120;
  double step_cpu_ms = 0;
  double step_sleep_ms = 0;
  int neighbours = 0;  ///< processes that burn a CPU each, all the time
};

/// Runs it in a process of its own, which records below `folder`. Throws std::runtime_error.
void run_real(const real_loader& loader, const std::string& folder);

}  // namespace bench

#endif  // LOTUS_BENCH_REAL_LOADER_HPP
