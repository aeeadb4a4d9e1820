// Measures how a thread spent an interval: on a CPU, blocked, or waiting for a CPU.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_MEASURED_WORK_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_MEASURED_WORK_HPP

#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "model/pipeline/off_cpu.hpp"

namespace lotus::tool {

/// The index of a work in recorded_pipeline::works.
using optional_work = optional_index<std::uint32_t>;

/// How one thread spent one interval of time.
struct measured_work {
  double cpu_ns = 0;       ///< time on the CPU in ns; 0 if CPU time is unknown
  double blocked_ns = 0;   ///< blocked time in ns; the whole interval if CPU time is unknown
  double queued_ns = 0;    ///< time in ns during which the thread waited for a CPU
  double others_busy = 0;  ///< mean number of CPUs that other threads kept busy during the work
  /// Mean number of CPUs that other threads kept busy during the first moments of the work; see
  /// speed_law.hpp for its use.
  double others_at_first = 0;
  /// How often the thread was blocked and then ran on the CPU, such as once for each sample of a
  /// batch, as far as the recorded operations show it.
  std::uint32_t rounds = 1;

  double all_ns() const noexcept { return cpu_ns + blocked_ns + queued_ns; }
  /// Returns the share of the time that the thread was on the CPU.
  double on_cpu() const noexcept { return all_ns() > 0 ? cpu_ns / all_ns() : 0; }
};

/// Returns the sums of the times.
inline measured_work sum_of(const std::vector<measured_work>& all) {
  measured_work sum;
  for (const measured_work& w : all) {
    sum.cpu_ns += w.cpu_ns;
    sum.blocked_ns += w.blocked_ns;
    sum.queued_ns += w.queued_ns;
  }
  return sum;
}

/// Returns how a thread spent the interval from `start_ns` to `end_ns`.
/// @param off    when the thread was off the CPU; nullptr if unknown: then all time counts as
///   blocked.
/// @param known  set to false if it is unknown how the thread spent the interval.
inline measured_work work_in(const off_cpu_time* off, std::int64_t start_ns, std::int64_t end_ns,
                             bool& known) {
  const auto wall_ns = static_cast<double>(end_ns - start_ns);
  if (off == nullptr) {
    known = false;
    return {0, wall_ns, 0};
  }
  const cpu_split split = off->split(start_ns, end_ns);
  const auto cpu_ns = static_cast<double>(split.cpu_ns);
  const double blocked_ns =
      split.blocked_ns ? static_cast<double>(*split.blocked_ns) : wall_ns - cpu_ns;
  return {cpu_ns, blocked_ns, wall_ns - cpu_ns - blocked_ns};
}

/// Returns the length of an interval without the time in which the thread waited for a CPU.
inline double without_queueing_ns(const off_cpu_time* off, std::int64_t start_ns,
                                  std::int64_t end_ns) {
  bool known = true;
  const measured_work all = work_in(off, start_ns, end_ns, known);
  return all.cpu_ns + all.blocked_ns;
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_MEASURED_WORK_HPP
