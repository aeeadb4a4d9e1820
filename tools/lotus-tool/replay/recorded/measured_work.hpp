// What a thread did in some time.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_MEASURED_WORK_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_MEASURED_WORK_HPP

#include <cstdint>

#include "base/index.hpp"
#include "model/pipeline/off_cpu.hpp"

namespace lotus::tool {

/// The place of a work in recorded_pipeline::works.
using optional_work = optional_index<std::uint32_t>;

/// What one thread did in one go, as it was recorded.
struct measured_work {
  double cpu_ns = 0;           ///< on the CPU; 0 where that is not known
  double blocked_ns = 0;       ///< where it is not known, all of its wall time
  double queued_ns = 0;        ///< it waited for a CPU
  double others_busy = 0;      ///< CPUs that worked for others meanwhile, mean
  double others_at_first = 0;  ///< the same of its first moments, as many for all of a stage

  /// The share of its time that it was on the CPU.
  double on_cpu() const noexcept {
    const double all_ns = cpu_ns + blocked_ns + queued_ns;
    return all_ns > 0 ? cpu_ns / all_ns : 0;
  }
};

/// @param off    of the thread; nullptr: not known, so all of it counts as blocked.
/// @param known  becomes false where what the thread did is not.
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

/// Of a time what the thread did not wait for a CPU.
inline double without_queueing_ns(const off_cpu_time* off, std::int64_t start_ns,
                                  std::int64_t end_ns) {
  bool known = true;
  const measured_work all = work_in(off, start_ns, end_ns, known);
  return all.cpu_ns + all.blocked_ns;
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_MEASURED_WORK_HPP
