// A loader whose workers share something that does not scale, simulated call by call.
#ifndef LOTUS_TESTS_CONTENDED_LOADER_HPP
#define LOTUS_TESTS_CONTENDED_LOADER_HPP

#include <cstdint>
#include <string>

#include "tool/diagnose/planted_logs.hpp"

namespace lotus::tool_test {

/// What stands behind Fetch.
enum class shared_kind : std::uint8_t {
  free,         ///< a remote service: any number of calls at once
  lock,         ///< a sleep under a mutex, whose next owner is any of those that wait
  locked_work,  ///< CPU work under a mutex
  work,         ///< CPU work that shares nothing but the CPUs
  device,       ///< so many channels, first come, first served
  rate_limit    ///< so many calls a second are let through; then each takes its own time
};

/// Fetch, then 0.6 ms of CPU work; each worker has two batches in flight. A batch takes the same in
/// every simulation, however many workers there are. CPUs are shared evenly by all threads that
/// want one, the neighbours' among them.
struct contended_loader {
  shared_kind kind = shared_kind::free;
  int channels = 1;          ///< of a device
  double limit_per_s = 250;  ///< of a rate limit
  double fetch_ms = 4;       ///< mean
  double cv = 0;             ///< its coefficient of variation
  double crop_ms = 0.6;
  double step_ms = 0.2;
  int cpus = 64;
  int neighbours = 0;  ///< threads of another program that want a CPU all the time
  int workers = 1;
  int batches = 240;
  unsigned seed = 1;

  /// Writes the run's logs, unless `logs` is null. Returns batches per second: all of them, from
  /// the beginning to the end of the last step.
  double simulate_into(planted_logs* logs) const;
  std::string name() const;
};

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_CONTENDED_LOADER_HPP
