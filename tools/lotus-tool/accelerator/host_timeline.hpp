// Divides the time of a program's host threads by activity, which explains why its accelerators
// were idle.
#ifndef LOTUS_TOOL_ACCELERATOR_HOST_TIMELINE_HPP
#define LOTUS_TOOL_ACCELERATOR_HOST_TIMELINE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "accelerator/device_figures.hpp"
#include "accelerator/trace/device_trace.hpp"

namespace lotus::tool {

/// Why a device was idle: the activity of the host at that time. If several host threads had
/// different activities, the first of them in this list counts.
enum class idle_cause : std::uint8_t {
  batch_wait,
  copy,
  synchronization,
  launch,
  host,
  device,  ///< nothing that the host did: the work had been launched before the gap began
  unknown  ///< the trace does not show what the host did
};
inline constexpr std::array all_idle_causes{
    idle_cause::batch_wait, idle_cause::copy,   idle_cause::synchronization, idle_cause::launch,
    idle_cause::host,       idle_cause::device, idle_cause::unknown};

/// Returns the name of a cause, such as "batch-wait".
std::string_view idle_cause_name(idle_cause cause) noexcept;

/// A time range, with the reason why devices that have no work in this range are idle.
struct cause_range {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  idle_cause cause = idle_cause::host;
};

/// A wait for a batch or a copy that Lotus recorded, with times on the trace's clock.
struct recorded_range {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  idle_cause cause = idle_cause::batch_wait;
};

/// Whether a trace contains calls that launch work. Without them, the cause of idle time is
/// unknown, except for waits for batches.
bool has_launches(const device_trace& trace) noexcept;

/// Returns the activity of the host at each time, as adjacent ranges without gaps. Before the first
/// and after the last range, the cause is `host`, or `unknown` if there are no launches.
///
/// - batch_wait: a thread is in PyTorch's enumerate(DataLoader), while other threads launch less
///   work than by chance, so that they wait with it; a consumer is in Lotus's scope BatchWait;
///   `recorded` contains a wait; or a thread that launches work preprocesses a batch itself
/// - copy: a thread is in a call that copies from the host, or in a synchronization right after
///   such a call; or a thread that also launches work is in a scope named Copy; or `recorded`
///   contains a copy
/// - synchronization: a thread is in a call that synchronizes or that copies to the host
/// - launch: a thread is in another call that launches work, in an operator of the framework that
///   contains such a call, or between two calls of these kinds that are less than 50 us apart
/// - host: everything else
std::vector<cause_range> host_timeline(const device_trace& trace,
                                       const std::vector<recorded_range>& recorded);

/// Looks up the activity of the host. The times must not decrease from one call to the next.
class timeline_cursor {
 public:
  /// @param otherwise  the cause before, between and after the ranges.
  timeline_cursor(const std::vector<cause_range>& ranges, idle_cause otherwise)
      : ranges_(ranges), otherwise_(otherwise) {}

  /// Divides the range from start_ns to end_ns into parts with one cause each, and calls
  /// `use(start_ns, end_ns, cause)` for each part, in order.
  template <class Use>
  void for_each_part(std::int64_t start_ns, std::int64_t end_ns, Use use) {
    while (at_ < ranges_.size() && ranges_[at_].end_ns <= start_ns) ++at_;
    std::size_t at = at_;
    while (start_ns < end_ns) {
      std::int64_t until_ns = end_ns;
      idle_cause cause = otherwise_;
      if (at < ranges_.size()) {
        if (start_ns < ranges_[at].start_ns) {
          until_ns = ranges_[at].start_ns;
        } else {
          until_ns = ranges_[at].end_ns;
          cause = ranges_[at++].cause;
        }
      }
      until_ns = until_ns < end_ns ? until_ns : end_ns;
      use(start_ns, until_ns, cause);
      start_ns = until_ns;
    }
  }

 private:
  const std::vector<cause_range>& ranges_;
  idle_cause otherwise_;
  std::size_t at_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_HOST_TIMELINE_HPP
