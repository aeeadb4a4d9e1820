#include "accelerator/gap_causes.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lotus::tool {
namespace {

/// After the host has launched a kernel or copy, the device normally starts it within this time. If
/// it starts later, the device was waiting for something else.
constexpr std::int64_t queue_ns = 30'000;

/// Gives the time in which a stream waited for an event to synchronization, unless the host shows
/// why there was no event.
void give_to_waits(std::vector<cause_range>& parts, const std::vector<device_gap>& waits) {
  if (waits.empty()) return;
  std::vector<cause_range> all;
  std::size_t from = 0;
  for (cause_range part : parts) {
    const bool known = part.cause == idle_cause::batch_wait || part.cause == idle_cause::copy;
    while (from < waits.size() && waits[from].end_ns <= part.start_ns) ++from;
    for (std::size_t i = from; !known && i < waits.size() && waits[i].start_ns < part.end_ns; ++i) {
      const std::int64_t start_ns = std::max(part.start_ns, waits[i].start_ns);
      const std::int64_t end_ns = std::min(part.end_ns, waits[i].end_ns);
      if (start_ns >= end_ns) continue;
      if (part.start_ns < start_ns) all.push_back({part.start_ns, start_ns, part.cause});
      all.push_back({start_ns, end_ns, idle_cause::synchronization});
      part.start_ns = end_ns;
    }
    if (part.start_ns < part.end_ns) all.push_back(part);
  }
  parts = std::move(all);
}

}  // namespace

gap_causes::gap_causes(const device_trace& trace, const call_starts& calls,
                       const std::vector<cause_range>& timeline)
    : trace_(trace),
      calls_(calls),
      host_(timeline, has_launches(trace) ? idle_cause::host : idle_cause::unknown) {}

std::vector<cause_range> gap_causes::of(const device_gap& gap,
                                        const std::vector<device_gap>& waits) {
  parts_.clear();
  const std::size_t call = gap.next == SIZE_MAX ? SIZE_MAX : calls_.call_of(trace_.work[gap.next]);
  // Until `ordered_ns`, the host had not yet launched the work that ends the gap, so the cause of
  // the gap is the activity of the host.
  const std::int64_t ordered_ns =
      call == SIZE_MAX ? gap.end_ns
                       : std::clamp(trace_.calls[call].start_ns, gap.start_ns, gap.end_ns);
  launch_cause_ = idle_cause::launch;
  bool first = true;
  host_.for_each_part(gap.start_ns, ordered_ns,
                      [&](std::int64_t start_ns, std::int64_t end_ns, idle_cause cause) {
                        add_part(start_ns, end_ns, cause, first);
                        first = false;
                      });
  if (ordered_ns < gap.end_ns) {
    add_ordered(ordered_ns, gap, trace_.calls[call], trace_.work[gap.next]);
  }
  give_to_waits(parts_, waits);
  return std::move(parts_);
}

/// Adds a part of a gap (a time in which the device was idle) with the activity of the host
/// during this part. If the device became idle because the host waited for it, the launches right
/// after that wait only give the idle device new work. Therefore they get the cause of the wait.
/// @param first  whether this is the first part of the gap.
void gap_causes::add_part(std::int64_t start_ns, std::int64_t end_ns, idle_cause cause,
                          bool first) {
  const bool waits = cause == idle_cause::synchronization || cause == idle_cause::copy;
  if (waits && (first || launch_cause_ != idle_cause::launch)) {
    launch_cause_ = cause;
  } else if (cause == idle_cause::launch) {
    cause = launch_cause_;
  } else {
    launch_cause_ = idle_cause::launch;
  }
  push(start_ns, end_ns, cause);
}

/// If the work that ends a gap was launched during the gap: adds the part of the gap after this
/// launch.
void gap_causes::add_ordered(std::int64_t from_ns, const device_gap& gap, const runtime_call& call,
                             const device_work& next) {
  const bool queued = call.end_ns <= gap.start_ns;
  idle_cause cause = queued ? idle_cause::device : launch_cause_;
  if (next.copy == copy_kind::to_device || next.copy == copy_kind::other) {
    cause = idle_cause::copy;
  }
  if (next.copy == copy_kind::to_host) cause = idle_cause::synchronization;
  const std::int64_t called_ns = std::clamp(call.end_ns, from_ns, gap.end_ns);
  push(from_ns, called_ns, cause);
  // If launched work does not start for a long time, it waits for an event of another stream or
  // for another device.
  const bool waits_on_device = gap.end_ns - called_ns >= queue_ns && next.copy == copy_kind::none;
  push(called_ns, gap.end_ns, waits_on_device ? idle_cause::synchronization : cause);
}

void gap_causes::push(std::int64_t start_ns, std::int64_t end_ns, idle_cause cause) {
  if (start_ns < end_ns) parts_.push_back({start_ns, end_ns, cause});
}

}  // namespace lotus::tool
