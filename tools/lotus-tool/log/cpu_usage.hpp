// Computes the CPU time that the processes of a run used, from readings that they recorded.
#ifndef LOTUS_TOOL_LOG_CPU_USAGE_HPP
#define LOTUS_TOOL_LOG_CPU_USAGE_HPP

#include <cstdint>
#include <optional>
#include <vector>

namespace lotus::tool {

/// A reading: what a process recorded about its use of the CPUs at one moment.
struct cpu_reading {
  std::int64_t time_ns = 0;  ///< the moment, in ns since 1970
  std::int64_t cpu_ns = 0;   ///< CPU time of all threads of the process until then
  /// How long the CPUs that the process may use had been idle until then, summed up over these
  /// CPUs; nullopt if this is unknown.
  std::optional<std::int64_t> idle_ns{};
};

/// The CPU time that all processes of a run used. It includes threads that recorded nothing, so it
/// can be larger than the CPU time of the recorded operations.
class cpu_usage {
 public:
  /// Adds the readings of one process.
  /// @param readings  the readings of the process, sorted by time. If there are none, for example
  ///   because an older version of the library recorded, the CPU time of the run is unknown.
  void add_process(std::vector<cpu_reading> readings);

  /// Returns the CPU time used between two moments, in ns; nullopt if it is unknown. Between two
  /// readings, CPU use is assumed to be constant.
  std::optional<double> between(std::int64_t start_ns, std::int64_t end_ns) const;

  /// Returns the mean number of idle CPUs between two moments; nullopt if it is unknown for more
  /// than half of this time.
  std::optional<double> idle_cpus(std::int64_t start_ns, std::int64_t end_ns) const;

 private:
  std::vector<std::vector<cpu_reading>> processes_;
  bool unknown_ = false;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_CPU_USAGE_HPP
