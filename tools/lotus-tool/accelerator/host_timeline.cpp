#include "accelerator/host_timeline.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/text.hpp"

namespace lotus::tool {
namespace {

/// If the host spends less than this time on something else between two calls, the time counts as
/// launch, because frameworks and Python need some microseconds between calls.
constexpr std::int64_t short_host_ns = 50'000;
/// A thread's waits explain idle time if other threads launch at most this part of what they would
/// launch during these waits by chance.
constexpr double chance_part = 0.5;

/// Whether a function of Python, such as "base.py(12): preprocess", builds a batch, as pipelines
/// for inference do without a loader.
bool builds_batch(std::string_view function) noexcept {
  return ends_with(function, "): preprocess") || ends_with(function, "): collate_fn");
}

bool launches_work(const runtime_call& call) noexcept {
  return call.kind != call_kind::other && call.kind != call_kind::synchronize;
}

class range_collector {
 public:
  range_collector(const device_trace& trace, const std::vector<recorded_range>& recorded)
      : trace_(trace),
        recorded_(recorded),
        otherwise_(has_launches(trace) ? idle_cause::host : idle_cause::unknown) {}

  std::vector<cause_range> collect() {
    find_directions();
    add_calls();
    add_operators();
    const std::vector<bool> explain = threads_whose_waits_explain();
    for (const wait_range& wait : trace_.waits) {
      if (wait.of_consumer || explain[wait.thread]) {
        add(wait.start_ns, wait.end_ns, idle_cause::batch_wait);
      }
    }
    for (const host_range& range : trace_.ranges) {
      if (range.kind == range_kind::line && orders_work(range.thread) &&
          builds_batch(trace_.names[range.name])) {
        add(range.start_ns, range.end_ns, idle_cause::batch_wait);
      }
    }
    for (const thread_range& copy : trace_.copies) {
      if (orders_work(copy.thread)) add(copy.start_ns, copy.end_ns, idle_cause::copy);
    }
    for (const recorded_range& r : recorded_) add(r.start_ns, r.end_ns, r.cause);
    return joined(painted());
  }

 private:
  struct edge {
    std::int64_t at_ns;
    idle_cause cause;
    bool begins;
  };

  void add(std::int64_t start_ns, std::int64_t end_ns, idle_cause cause) {
    if (end_ns <= start_ns) return;
    edges_.push_back({start_ns, cause, true});
    edges_.push_back({end_ns, cause, false});
  }

  bool orders_work(std::uint32_t thread) const {
    return thread < launches_.size() && !launches_[thread].empty();
  }

  /// Returns, for each thread, whether no work is launched while the thread waits, so that its
  /// waits explain idle time. While a thread that prefetches batches waits, work is launched.
  std::vector<bool> threads_whose_waits_explain() const {
    std::vector<bool> explain(trace_.threads.size());
    std::vector<std::vector<thread_range>> waits(trace_.threads.size());
    for (const wait_range& wait : trace_.waits) waits[wait.thread].push_back(wait);
    std::int64_t first_ns = INT64_MAX;
    std::int64_t last_ns = INT64_MIN;
    for (const std::vector<std::int64_t>& starts : launches_) {
      if (starts.empty()) continue;
      first_ns = std::min(first_ns, starts.front());
      last_ns = std::max(last_ns, starts.back());
    }
    for (std::size_t thread = 0; thread < waits.size(); ++thread) {
      double in_waits_ns = 0, inside = 0, all = 0;
      for (const thread_range& wait : waits[thread]) {
        const std::int64_t start_ns = std::max(wait.start_ns, first_ns);
        const std::int64_t end_ns = std::min(wait.end_ns, last_ns);
        if (start_ns < end_ns) in_waits_ns += static_cast<double>(end_ns - start_ns);
      }
      for (std::size_t other = 0; other < launches_.size(); ++other) {
        const bool of_process = trace_.threads[other].process == trace_.threads[thread].process;
        if (other == thread || !of_process) continue;
        const std::vector<std::int64_t>& starts = launches_[other];
        all += static_cast<double>(starts.size());
        for (const thread_range& wait : waits[thread]) {
          inside +=
              static_cast<double>(std::lower_bound(starts.begin(), starts.end(), wait.end_ns) -
                                  std::upper_bound(starts.begin(), starts.end(), wait.start_ns));
        }
      }
      const bool launches = orders_work(static_cast<std::uint32_t>(thread));
      const bool waits_alone = all == 0 && !launches && first_ns <= last_ns;
      const double span_ns = std::max(1.0, static_cast<double>(last_ns - first_ns));
      explain[thread] = !waits_alone && inside <= chance_part * all * in_waits_ns / span_ns;
    }
    return explain;
  }

  void find_directions() {
    for (const device_work& work : trace_.work) {
      if (work.copy != copy_kind::none) directions_.emplace(work.correlation, work.copy);
    }
  }

  /// Returns the direction of a call that copies. If the trace does not contain the copy, assumes a
  /// copy to the device, because most copies transfer batches. Returns `none` for other calls.
  copy_kind direction_of(const runtime_call& call) const {
    if (call.kind != call_kind::copy) return copy_kind::none;
    const auto at = directions_.find(call.correlation);
    if (at != directions_.end() && at->second != copy_kind::other) return at->second;
    return call.copy == copy_kind::other ? copy_kind::to_device : call.copy;
  }

  void add_calls() {
    std::vector<const runtime_call*> calls;
    calls.reserve(trace_.calls.size());
    for (const runtime_call& call : trace_.calls) {
      if (call.kind != call_kind::other) calls.push_back(&call);
    }
    std::sort(calls.begin(), calls.end(), [](const runtime_call* a, const runtime_call* b) {
      return std::tie(a->thread, a->start_ns) < std::tie(b->thread, b->start_ns);
    });
    launches_.resize(trace_.threads.size());
    const runtime_call* before = nullptr;
    bool before_copies_in = false;
    for (const runtime_call* const call : calls) {
      if (before != nullptr && before->thread != call->thread) before_copies_in = false;
      const copy_kind direction = direction_of(*call);
      const bool copies_in = direction == copy_kind::to_device;
      idle_cause cause = idle_cause::launch;
      if (copies_in || (call->kind == call_kind::synchronize && before_copies_in)) {
        cause = idle_cause::copy;
      } else if (call->kind == call_kind::synchronize || direction == copy_kind::to_host) {
        cause = idle_cause::synchronization;
      }
      add(call->start_ns, call->end_ns, cause);
      if (launches_work(*call)) launches_[call->thread].push_back(call->start_ns);
      before_copies_in = copies_in;
      before = call;
    }
  }

  /// Adds the framework's operators (such as aten::add) that launch work on the device, except
  /// those inside other operators.
  void add_operators() {
    std::vector<thread_range> operators;
    for (const host_range& range : trace_.ranges) {
      if (range.kind == range_kind::framework) operators.push_back(range);
    }
    std::sort(operators.begin(), operators.end(), [](const thread_range& a, const thread_range& b) {
      return std::tie(a.thread, a.start_ns, b.end_ns) < std::tie(b.thread, b.start_ns, a.end_ns);
    });
    for (std::size_t i = 0; i < operators.size();) {
      const thread_range& outer = operators[i];
      while (i < operators.size() && operators[i].thread == outer.thread &&
             operators[i].start_ns < std::max(outer.end_ns, outer.start_ns + 1)) {
        ++i;
      }
      if (outer.thread >= launches_.size()) continue;
      const std::vector<std::int64_t>& starts = launches_[outer.thread];
      const auto inside = std::lower_bound(starts.begin(), starts.end(), outer.start_ns);
      if (inside != starts.end() && *inside < outer.end_ns) {
        add(outer.start_ns, outer.end_ns, idle_cause::launch);
      }
    }
  }

  /// Divides the time of the host into ranges with one cause each. Where several causes apply at
  /// the same time, uses the one that comes first in the enumeration idle_cause.
  std::vector<cause_range> painted() {
    std::sort(edges_.begin(), edges_.end(),
              [](const edge& a, const edge& b) { return a.at_ns < b.at_ns; });
    std::array<std::int64_t, all_idle_causes.size()> open{};
    std::vector<cause_range> ranges;
    for (std::size_t i = 0; i < edges_.size();) {
      const std::int64_t at_ns = edges_[i].at_ns;
      for (; i < edges_.size() && edges_[i].at_ns == at_ns; ++i) {
        open[static_cast<std::size_t>(edges_[i].cause)] += edges_[i].begins ? 1 : -1;
      }
      if (i == edges_.size()) break;
      const auto* const first =
          std::find_if(open.begin(), open.end(), [](std::int64_t n) { return n > 0; });
      const idle_cause cause =
          first == open.end() ? otherwise_ : static_cast<idle_cause>(first - open.begin());
      if (!ranges.empty() && ranges.back().cause == cause) {
        ranges.back().end_ns = edges_[i].at_ns;
      } else {
        ranges.push_back({at_ns, edges_[i].at_ns, cause});
      }
    }
    edges_ = {};
    return ranges;
  }

  static bool is_call(idle_cause cause) noexcept {
    return cause == idle_cause::copy || cause == idle_cause::synchronization ||
           cause == idle_cause::launch;
  }

  /// Changes short ranges of `host` between two calls to `launch`, and joins neighboring ranges
  /// that have the same cause.
  static std::vector<cause_range> joined(std::vector<cause_range> ranges) {
    std::vector<cause_range> all;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      cause_range& r = ranges[i];
      const bool between = i > 0 && i + 1 < ranges.size() && is_call(ranges[i - 1].cause) &&
                           is_call(ranges[i + 1].cause);
      if (r.cause == idle_cause::host && between && r.end_ns - r.start_ns < short_host_ns) {
        r.cause = idle_cause::launch;
      }
      if (!all.empty() && all.back().cause == r.cause) {
        all.back().end_ns = r.end_ns;
      } else {
        all.push_back(r);
      }
    }
    return all;
  }

  const device_trace& trace_;
  const std::vector<recorded_range>& recorded_;
  idle_cause otherwise_;
  /// The direction of each copy, by the number of the call that launched the copy.
  std::unordered_map<std::uint64_t, copy_kind> directions_;
  /// For each thread, the starts of the calls that launch work.
  std::vector<std::vector<std::int64_t>> launches_;
  std::vector<edge> edges_;
};

}  // namespace

std::string_view idle_cause_name(idle_cause cause) noexcept {
  static constexpr std::array<std::string_view, all_idle_causes.size()> names{
      "batch-wait", "copy", "synchronization", "launch", "host", "device", "unknown"};
  return names[static_cast<std::size_t>(cause)];
}

bool has_launches(const device_trace& trace) noexcept {
  return std::any_of(trace.calls.begin(), trace.calls.end(), launches_work);
}

std::vector<cause_range> host_timeline(const device_trace& trace,
                                       const std::vector<recorded_range>& recorded) {
  return range_collector(trace, recorded).collect();
}

}  // namespace lotus::tool
