// Finds the causes of the gaps in the work of a device, and the gaps that occur only once, while
// the program starts.
#ifndef LOTUS_TOOL_ACCELERATOR_GAP_CAUSES_HPP
#define LOTUS_TOOL_ACCELERATOR_GAP_CAUSES_HPP

#include <cstdint>
#include <vector>

#include "accelerator/device_figures.hpp"
#include "accelerator/host_timeline.hpp"
#include "accelerator/trace/device_trace.hpp"

namespace lotus::tool {

/// Finds the causes of the gaps in the work of one device. The gaps must be in order of time.
class gap_causes {
 public:
  /// @param timeline  the result of host_timeline().
  gap_causes(const device_trace& trace, const call_starts& calls,
             const std::vector<cause_range>& timeline);

  /// Returns the parts of a gap, each with its cause. Their lengths add up to the gap's.
  /// @param waits  times in which a stream of the device waited for an event, in order of time.
  std::vector<cause_range> of(const device_gap& gap, const std::vector<device_gap>& waits);

 private:
  void add_part(std::int64_t start_ns, std::int64_t end_ns, idle_cause cause, bool first);
  void add_ordered(std::int64_t from_ns, const device_gap& gap, const runtime_call& call,
                   const device_work& next);
  void push(std::int64_t start_ns, std::int64_t end_ns, idle_cause cause);

  const device_trace& trace_;
  const call_starts& calls_;
  timeline_cursor host_;
  idle_cause launch_cause_ = idle_cause::launch;
  std::vector<cause_range> parts_;
};

/// Returns, for each gap of a device, whether it is start-up. This is so for gaps of the first step
/// that are far longer than those of later steps, and for gaps in a call that takes far longer than
/// launches usually do, and launches a kernel for the first time or occurs only in the first half.
std::vector<bool> find_start_up(const device_trace& trace, const std::vector<device_gap>& gaps);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_GAP_CAUSES_HPP
