// Computes how many CPUs a pipeline kept busy at any moment of its run.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_BUSY_CPUS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_BUSY_CPUS_HPP

#include <cstdint>
#include <vector>

namespace lotus::tool {

/// An interval of one thread and the share of it that was on the CPU.
struct cpu_stretch {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  double share = 0;
};

/// Sums up the CPU use of all threads, assumed to be even over each interval.
class busy_cpus {
 public:
  explicit busy_cpus(const std::vector<cpu_stretch>& stretches);

  /// The mean between two times; 0 for an empty interval.
  double mean(std::int64_t start_ns, std::int64_t end_ns) const;

 private:
  struct moment {
    std::int64_t time_ns = 0;
    double busy = 0;    ///< number of busy CPUs from this moment on
    double sum_ns = 0;  ///< integral of `busy` up to this moment
  };
  double until(std::int64_t time_ns) const;

  std::vector<moment> moments_;  // in order of time
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_BUSY_CPUS_HPP
