#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "accelerator/trace/device_trace.hpp"

namespace lotus::tool {
namespace {

/// The clocks of a host and a device may differ by clock_ns; times may be rounded by rounding_ns.
constexpr std::int64_t clock_ns = 1'000'000;
constexpr std::int64_t rounding_ns = 2'000;
/// Work that no call of the recording launched is left out if it is farther from the recording than
/// this part of the recording's length.
constexpr double far_part = 0.1;
constexpr std::int64_t far_at_least_ns = 10'000'000;
/// What is farther away than this many lengths of the recording, and this time, is left out even if
/// a call launched it.
constexpr double ages_part = 1000;
constexpr std::int64_t ages_at_least_ns = 3'600'000'000'000;

struct time_frame {
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;

  template <class Range>
  void add(const Range& range) noexcept {
    first_ns = std::min(first_ns, range.start_ns);
    last_ns = std::max(last_ns, range.end_ns);
  }
  bool empty() const noexcept { return first_ns > last_ns; }
  time_frame wider(std::int64_t at_least_ns, double part) const noexcept {
    const auto ns = std::max(
        at_least_ns, static_cast<std::int64_t>(static_cast<double>(last_ns - first_ns) * part));
    return {first_ns - ns, last_ns + ns};
  }
  template <class Range>
  bool has(const Range& range) const noexcept {
    return range.end_ns >= first_ns && range.start_ns <= last_ns;
  }
};

class trace_mender {
 public:
  explicit trace_mender(device_trace& trace) : trace_(trace) {}

  void mend() {
    leave_out_of_ages();
    leave_out_negative();
    calls_.emplace(trace_);
    leave_out_far();
    for (device_work& work : trace_.work) classify(work);
    cut_at_next_work();
    cut_at_synchronizations();
    cut_waits();
  }

 private:
  const runtime_call* call_of(const device_work& work) const {
    const std::size_t at = calls_->call_of(work);
    return at == SIZE_MAX ? nullptr : &trace_.calls[at];
  }

  template <class Ranges, class IsWrong>
  void leave_out(Ranges& ranges, std::uint64_t& counter, IsWrong is_wrong) {
    const auto end = std::remove_if(ranges.begin(), ranges.end(), is_wrong);
    counter += static_cast<std::uint64_t>(std::distance(end, ranges.end()));
    ranges.erase(end, ranges.end());
  }

  /// Leaves out what happened years before or after the rest, for example at time 0.
  void leave_out_of_ages() {
    std::vector<std::int64_t> starts;
    const auto collect = [&starts](const auto& ranges) {
      for (const auto& range : ranges) starts.push_back(range.start_ns);
    };
    collect(trace_.work);
    collect(trace_.calls);
    collect(trace_.ranges);
    collect(trace_.waits);
    collect(trace_.steps);
    // The middle 90 % of all events.
    const std::size_t tail = starts.size() / 20;
    const auto nth = [&](std::size_t n) {
      const auto at = starts.begin() + static_cast<std::ptrdiff_t>(n);
      std::nth_element(starts.begin(), at, starts.end());
      return *at;
    };
    const time_frame core{nth(tail), nth(starts.size() - 1 - tail)};
    const time_frame allowed = core.wider(ages_at_least_ns, ages_part);
    const auto is_outside = [&](const auto& range) {
      return range.start_ns < allowed.first_ns || range.start_ns > allowed.last_ns;
    };
    leave_out(trace_.work, trace_.faults.outside, is_outside);
    leave_out(trace_.calls, trace_.faults.outside, is_outside);
    leave_out(trace_.ranges, trace_.faults.outside, is_outside);
    leave_out(trace_.waits, trace_.faults.outside, is_outside);
    leave_out(trace_.steps, trace_.faults.outside, is_outside);
  }

  /// Rounding shortens events by up to 2 us, so that they may seem to end before they begin.
  void leave_out_negative() {
    const auto is_negative = [](const auto& range) {
      return range.end_ns < range.start_ns - rounding_ns;
    };
    leave_out(trace_.work, trace_.faults.impossible_times, is_negative);
    leave_out(trace_.calls, trace_.faults.impossible_times, is_negative);
    leave_out(trace_.waits, trace_.faults.impossible_times, is_negative);
  }

  /// Leaves out a few works that no call launched and that are far away from the recording and from
  /// other work. Work that was launched before the recording began lies close to it.
  void leave_out_far() {
    time_frame recording;
    const auto add_all = [&recording](const auto& ranges) {
      for (const auto& range : ranges) recording.add(range);
    };
    add_all(trace_.calls);
    add_all(trace_.waits);
    add_all(trace_.steps);
    add_all(trace_.ranges);
    std::vector<const device_work*> alone;
    for (const device_work& work : trace_.work) {
      if (call_of(work) == nullptr) {
        alone.push_back(&work);
      } else {
        recording.add(work);
      }
    }
    if (alone.empty()) return;
    if (recording.empty()) recording = frame_of_most();
    const std::int64_t far_ns =
        recording.first_ns - recording.wider(far_at_least_ns, far_part).first_ns;
    std::sort(alone.begin(), alone.end(),
              [](const device_work* a, const device_work* b) { return a->start_ns < b->start_ns; });
    const auto join = [&](const device_work& work) {
      if (work.start_ns <= recording.last_ns + far_ns &&
          work.end_ns >= recording.first_ns - far_ns) {
        recording.add(work);
      }
    };
    for (const device_work* const work : alone) join(*work);
    std::for_each(alone.rbegin(), alone.rend(), [&](const device_work* work) { join(*work); });
    const auto is_far = [&](const device_work& work) {
      return call_of(work) == nullptr && !recording.has(work);
    };
    const auto few = static_cast<std::ptrdiff_t>(3 + trace_.work.size() / 100);
    if (std::count_if(trace_.work.begin(), trace_.work.end(), is_far) > few) return;
    leave_out(trace_.work, trace_.faults.outside, is_far);
  }

  /// Returns from when to when the device worked, without the first and last per mille of the work.
  time_frame frame_of_most() const {
    std::vector<const device_work*> order;
    order.reserve(trace_.work.size());
    for (const device_work& work : trace_.work) order.push_back(&work);
    std::sort(order.begin(), order.end(),
              [](const device_work* a, const device_work* b) { return a->start_ns < b->start_ns; });
    const std::size_t few = order.size() < 4 ? 0 : 1 + order.size() / 1000;
    time_frame most;
    for (std::size_t i = few; i + few < order.size(); ++i) most.add(*order[i]);
    return most.wider(0, 10);
  }

  void classify(device_work& work) {
    const runtime_call* const call = call_of(work);
    if (call == nullptr) return;
    if (work.kind == work_kind::compute && call->kind == call_kind::copy) {
      work.kind = work_kind::copy;
      work.copy = copy_kind::other;
    }
    if (work.kind == work_kind::compute && call->kind == call_kind::set_memory) {
      work.kind = work_kind::set_memory;
    }
    if (work.copy == copy_kind::other && call->copy != copy_kind::none) work.copy = call->copy;
    if (work.copy != copy_kind::none && work.bytes == 0) work.bytes = call->bytes;
  }

  /// A stream begins its works one after the other. Kernels of one graph, and kernels that are
  /// launched to begin early, may overlap; but none of them lasts longer than the next one.
  void cut_at_next_work() {
    std::vector<device_work*> order;
    order.reserve(trace_.work.size());
    for (device_work& work : trace_.work) order.push_back(&work);
    std::sort(order.begin(), order.end(), [](const device_work* a, const device_work* b) {
      return std::tie(a->stream, a->start_ns) < std::tie(b->stream, b->start_ns);
    });
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      device_work& work = *order[i];
      for (std::size_t n = i + 1; n < order.size() && order[n]->stream == work.stream; ++n) {
        const device_work& next = *order[n];
        if (next.start_ns >= work.end_ns) break;
        if (next.correlation == work.correlation && work.correlation != 0) continue;
        if (next.kind == work_kind::wait || work.kind == work_kind::wait) continue;
        if (next.end_ns - next.start_ns <= rounding_ns) continue;
        if (work.end_ns > next.end_ns + rounding_ns) {
          work.end_ns = std::max(work.start_ns, next.start_ns);
          ++trace_.faults.overlapping;
        }
        break;
      }
    }
  }

  /// When a synchronization with the whole device has returned, all work that was launched before
  /// it has ended.
  void cut_at_synchronizations() {
    std::vector<const runtime_call*> ends;
    for (const runtime_call& call : trace_.calls) {
      const std::string_view name = trace_.names[call.name];
      if (name == "cudaDeviceSynchronize" || name == "hipDeviceSynchronize") ends.push_back(&call);
    }
    if (ends.empty() || has_several_devices()) return;
    std::sort(ends.begin(), ends.end(), [](const runtime_call* a, const runtime_call* b) {
      return a->start_ns < b->start_ns;
    });
    for (device_work& work : trace_.work) {
      const runtime_call* const call = call_of(work);
      if (call == nullptr) continue;
      const auto next = std::lower_bound(
          ends.begin(), ends.end(), call->end_ns,
          [](const runtime_call* sync, std::int64_t ns) { return sync->start_ns < ns; });
      if (next == ends.end()) continue;
      const std::int64_t until_ns = (*next)->end_ns;
      if (work.end_ns <= until_ns + clock_ns || work.start_ns > until_ns) continue;
      work.end_ns = until_ns;
      ++trace_.faults.past_synchronization;
    }
  }

  bool has_several_devices() const {
    return std::any_of(trace_.streams.begin(), trace_.streams.end(), [&](const device_stream& s) {
      return s.device != trace_.streams.front().device;
    });
  }

  /// The consumer waits for one batch after the other, so a wait ends before the next one begins.
  void cut_waits() {
    std::vector<wait_range*> order;
    order.reserve(trace_.waits.size());
    for (wait_range& wait : trace_.waits) order.push_back(&wait);
    const auto key = [](const wait_range* w) {
      return std::tuple(w->of_consumer, w->thread, w->start_ns);
    };
    std::sort(order.begin(), order.end(),
              [&](const wait_range* a, const wait_range* b) { return key(a) < key(b); });
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      wait_range& wait = *order[i];
      const wait_range& next = *order[i + 1];
      if (next.of_consumer != wait.of_consumer || next.thread != wait.thread) continue;
      if (wait.end_ns <= next.end_ns + rounding_ns || wait.end_ns <= next.start_ns) continue;
      // A wait of the same time inside another one is of a loader that wraps a loader.
      const bool wraps = i + 2 >= order.size() || order[i + 2]->thread != wait.thread ||
                         order[i + 2]->start_ns >= wait.end_ns;
      if (wraps) continue;
      wait.end_ns = next.start_ns;
      ++trace_.faults.overlapping;
    }
  }

  device_trace& trace_;
  std::optional<call_starts> calls_;
};

}  // namespace

void mend_trace(device_trace& trace) {
  trace_mender(trace).mend();
}

}  // namespace lotus::tool
