// Runs a synthetic loader, whose threads compute and sleep for known times.
#ifndef LOTUS_BENCH_REAL_LOADER_HPP
#define LOTUS_BENCH_REAL_LOADER_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// The work of one operation on each batch. The times are random, but every run has the same times.
struct real_operation {
  std::string name;
  double cpu_ms = 0;
  double sleep_ms = 0;
  /// Standard deviation of the logarithm of cpu_ms and sleep_ms (log-normal distribution), which
  /// also applies to locked_ms.
  double sigma = 0;
  /// Maximum number of calls that run at the same time, in the order of their arrival; 0: no limit.
  /// 1 models a lock or a device with one channel.
  int at_once = 0;
  /// Number of threads if the operation is a stage; 0: as many as `workers` of the loader.
  int threads = 0;
  /// Time after cpu_ms and sleep_ms that the call sleeps while it holds a mutex.
  double locked_ms = 0;
};

struct real_loader {
  std::vector<real_operation> operations;
  int workers = 2;
  int prefetch = 2;  ///< batches in flight per worker
  bool ordered = true;
  /// Whether each operation is a stage with its own threads and queue.
  bool stages = false;
  int batches = 120;
  double step_cpu_ms = 0;
  double step_sleep_ms = 0;
  /// Number of CPUs on which the workers may run; the consumer then has another one. 0: all threads
  /// may run on all CPUs.
  int loader_cpus = 0;
  int neighbours = 0;  ///< number of processes that keep one CPU busy each, all the time
};

/// Runs the loader in a child process, which records into a folder inside `folder`. Throws
/// std::runtime_error if this fails.
void run_real(const real_loader& loader, const std::string& folder);

}  // namespace bench

#endif  // LOTUS_BENCH_REAL_LOADER_HPP
