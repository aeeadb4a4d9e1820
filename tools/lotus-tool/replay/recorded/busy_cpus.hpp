// Computes how many CPUs a pipeline kept busy at each moment of its run.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_BUSY_CPUS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_BUSY_CPUS_HPP

#include <cstdint>
#include <vector>

namespace lotus::tool {

/// An interval of time, and the share (0..1) of the interval during which a thread was on the CPU.
struct cpu_interval {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  double share = 0;
};

/// Sums up the CPU use of all threads. Assumes that a thread uses the CPU evenly within an
/// interval.
class busy_cpus {
 public:
  explicit busy_cpus(const std::vector<cpu_interval>& intervals);

  /// Returns the mean number of busy CPUs between two times; 0 if they are equal.
  double mean(std::int64_t start_ns, std::int64_t end_ns) const;

 private:
  struct moment {
    std::int64_t time_ns = 0;
    double busy = 0;    ///< number of busy CPUs from this time on
    double sum_ns = 0;  ///< integral of `busy` up to this time
  };
  double until(std::int64_t time_ns) const;

  std::vector<moment> moments_;  // all times when `busy` changes, sorted
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_BUSY_CPUS_HPP
