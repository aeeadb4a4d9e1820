// Simulates, call by call, a loader whose workers share a resource that does not scale.
#ifndef LOTUS_TESTS_CONTENDED_LOADER_HPP
#define LOTUS_TESTS_CONTENDED_LOADER_HPP

#include <cstdint>
#include <string>

#include "tool/diagnose/planted_logs.hpp"

namespace lotus::tool_test {

/// The resource that the calls of Fetch share.
enum class shared_kind : std::uint8_t {
  free,         ///< a remote service that serves any number of calls at the same time
  lock,         ///< sleeping with a locked mutex; any waiting thread may be the next owner
  locked_work,  ///< CPU work with a locked mutex
  work,         ///< CPU work that shares only the CPUs
  device,       ///< a device that serves `channels` calls simultaneously, in order of arrival
  rate_limit    ///< `limit_per_s` calls may begin per second; each then takes its own time
};

/// A loader whose workers call Fetch and then compute for 0.6 ms. Two batches per worker are in
/// flight. A given batch takes the same time in every simulation, even with another number of
/// workers. All threads that want a CPU share the CPUs evenly, including those of another program.
struct contended_loader {
  shared_kind kind = shared_kind::free;
  int channels = 1;          ///< number of calls that a device serves simultaneously
  double limit_per_s = 250;  ///< calls per second that a rate limit allows
  double fetch_ms = 4;       ///< mean time of a call
  double cv = 0;             ///< coefficient of variation of the time of a call
  /// Mean time of a call before it needs the resource: it sleeps if `kind` is `lock`, otherwise it
  /// computes.
  double before_ms = 0;
  double crop_ms = 0.6;
  double step_ms = 0.2;
  bool step_computes = false;  ///< whether the step needs a CPU
  int loader_cpus = 0;  ///< the workers share so many CPUs, and the step has its own; 0: all share
  bool reads_files = false;  ///< whether samples show that calls of Fetch wait for a file
  int cpus = 64;
  int neighbours = 0;  ///< number of threads of another program that always want a CPU
  int workers = 1;
  int batches = 240;
  /// How often per second a worker that waits for a lock, or sleeps in a call of Fetch, is sampled,
  /// at random times; 0: never.
  double wait_samples_per_s = 0;
  unsigned seed = 1;

  /// Simulates a run, and writes its logs unless `logs` is null. Returns batches per second: all
  /// batches, divided by the time from the run's start to the end of its last step.
  double simulate_into(planted_logs* logs) const;
  /// Simulates a run, and writes its logs into a folder.
  void record_into(const temp_dir& dir) const {
    planted_logs logs;
    simulate_into(&logs);
    logs.write(dir);
  }
  std::string name() const;
};

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_CONTENDED_LOADER_HPP
