#include "accelerator/gap_causes.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "model/run_model.hpp"

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

/// Gaps are start-up only if they are at least this share of the idle time.
constexpr double start_up_share = 0.1;
/// A gap that is start-up is at least this long, and at least gap_times times as long as other
/// gaps. The same holds for a call.
constexpr std::int64_t start_up_ns = 1'000'000;
constexpr std::int64_t gap_times = 5;
constexpr std::int64_t call_times = 50;

template <class Range>
std::int64_t overlap_ns(const Range& range, std::int64_t start_ns, std::int64_t end_ns) noexcept {
  return std::min(range.end_ns, end_ns) - std::max(range.start_ns, start_ns);
}

/// Finds the gaps that are start-up.
class start_up_finder {
 public:
  explicit start_up_finder(const device_trace& trace) : trace_(trace), steps_(trace.steps) {
    sort_by_start(steps_);
    find_slow_calls();
    std::int64_t first_ns = INT64_MAX;
    std::int64_t last_ns = INT64_MIN;
    std::unordered_map<std::uint32_t, std::int64_t> firsts_ns;
    for (const device_work& work : trace.work) {
      first_ns = std::min(first_ns, work.start_ns);
      last_ns = std::max(last_ns, work.end_ns);
      const auto [at, added] = firsts_ns.try_emplace(work.name, work.start_ns);
      if (!added) at->second = std::min(at->second, work.start_ns);
    }
    firsts_ns_ = std::move(firsts_ns);
    middle_ns_ = first_ns + (last_ns - first_ns) / 2;
  }

  /// Returns, for each gap of a device, whether it is start-up.
  std::vector<bool> find(const std::vector<device_gap>& gaps) const {
    std::vector<bool> is(gaps.size());
    const std::int64_t huge_ns = huge_in_first_step_ns(gaps);
    const bool slow_calls_recur = std::any_of(gaps.begin(), gaps.end(), [&](const device_gap& gap) {
      return gap.start_ns > middle_ns_ && is_of_slow_call(gap) && !begins_kernel(gap);
    });
    std::int64_t sum_ns = 0, all_ns = 0;
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      const device_gap& gap = gaps[i];
      const std::int64_t ns = gap.end_ns - gap.start_ns;
      const bool first_step = ns > huge_ns && gap.end_ns <= steps_[1].start_ns;
      is[i] =
          first_step || (ns >= start_up_ns && is_of_slow_call(gap) &&
                         (begins_kernel(gap) || (!slow_calls_recur && gap.start_ns <= middle_ns_)));
      all_ns += ns;
      if (is[i]) sum_ns += ns;
    }
    if (static_cast<double>(sum_ns) < start_up_share * static_cast<double>(all_ns)) {
      is.assign(is.size(), false);
    }
    return is;
  }

 private:
  /// Finds calls that take far longer than launches usually do. Calls that wait for the device do
  /// not count.
  void find_slow_calls() {
    std::vector<std::int64_t> launches_ns;
    for (const runtime_call& call : trace_.calls) {
      if (call.kind == call_kind::launch) launches_ns.push_back(call.end_ns - call.start_ns);
    }
    if (launches_ns.empty()) return;
    const auto middle = launches_ns.begin() + static_cast<std::ptrdiff_t>(launches_ns.size() / 2);
    std::nth_element(launches_ns.begin(), middle, launches_ns.end());
    const std::int64_t slow_ns = std::max(start_up_ns, call_times * *middle);
    for (const runtime_call& call : trace_.calls) {
      const bool waits = call.kind == call_kind::copy || call.kind == call_kind::synchronize;
      if (!waits && call.end_ns - call.start_ns >= slow_ns) slow_.push_back(&call);
    }
  }

  bool is_of_slow_call(const device_gap& gap) const {
    std::int64_t ns = 0;
    for (const runtime_call* const call : slow_) {
      ns += std::max<std::int64_t>(0, overlap_ns(*call, gap.start_ns, gap.end_ns));
    }
    return 2 * ns >= gap.end_ns - gap.start_ns;
  }

  /// Whether the gap ends with the first launch of a kernel.
  bool begins_kernel(const device_gap& gap) const {
    if (gap.next == SIZE_MAX) return false;
    const device_work& work = trace_.work[gap.next];
    return work.kind == work_kind::compute && firsts_ns_.at(work.name) == work.start_ns;
  }

  /// Returns above which length a gap of the first step is start-up: several times the longest gap
  /// that a later step usually has.
  std::int64_t huge_in_first_step_ns(const std::vector<device_gap>& gaps) const {
    constexpr std::size_t enough_steps = 3;
    if (steps_.size() < enough_steps) return INT64_MAX;
    std::vector<std::int64_t> longest_ns(steps_.size());
    for (const device_gap& gap : gaps) {
      const auto after = std::upper_bound(
          steps_.begin(), steps_.end(), gap.end_ns,
          [](std::int64_t ns, const profiler_step& step) { return ns < step.start_ns; });
      if (after == steps_.begin()) continue;
      std::int64_t& ns = longest_ns[static_cast<std::size_t>(after - steps_.begin()) - 1];
      ns = std::max(ns, gap.end_ns - gap.start_ns);
    }
    const auto middle = longest_ns.begin() + 1 + static_cast<std::ptrdiff_t>(steps_.size() - 1) / 2;
    std::nth_element(longest_ns.begin() + 1, middle, longest_ns.end());
    return std::max(start_up_ns, gap_times * *middle);
  }

  const device_trace& trace_;
  std::vector<profiler_step> steps_;
  std::vector<const runtime_call*> slow_;
  std::unordered_map<std::uint32_t, std::int64_t> firsts_ns_;  ///< by the name of the kernel
  std::int64_t middle_ns_ = 0;
};

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

std::vector<bool> find_start_up(const device_trace& trace, const std::vector<device_gap>& gaps) {
  return start_up_finder(trace).find(gaps);
}

}  // namespace lotus::tool
