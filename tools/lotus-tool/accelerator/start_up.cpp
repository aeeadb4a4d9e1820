#include "accelerator/start_up.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace lotus::tool {
namespace {

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

std::vector<bool> find_start_up(const device_trace& trace, const std::vector<device_gap>& gaps) {
  return start_up_finder(trace).find(gaps);
}

}  // namespace lotus::tool
