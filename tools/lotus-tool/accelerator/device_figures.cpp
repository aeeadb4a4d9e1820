#include "accelerator/device_figures.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace lotus::tool {
namespace {

/// Gaps that are shorter than this count as kernel wait. This is the value of
/// consecutive_kernel_delay in HolisticTraceAnalysis (a tool for PyTorch traces), so that both
/// tools give equal results.
constexpr std::int64_t kernel_wait_below_ns = 30'000;

/// Computes the length of the union of ranges, which must be added in order of their starts. If
/// rounding makes a range end before it starts, it counts with its negative length.
class range_union {
 public:
  /// @param keeps  whether to keep the ranges, for sums_of_parts().
  explicit range_union(bool keeps = false) : keeps_(keeps) {}

  /// Adds a range. Returns whether it begins after a gap, or is the first range.
  bool add(std::int64_t start_ns, std::int64_t end_ns) {
    const bool apart = empty_ || start_ns > end_ns_;
    if (apart) {
      add_new(start_ns, end_ns);
    } else if (end_ns > end_ns_) {
      add_new(end_ns_, end_ns);
    }
    empty_ = false;
    return apart;
  }

  bool empty() const noexcept { return empty_; }
  std::int64_t sum_ns() const noexcept { return sum_ns_; }
  std::int64_t end_ns() const noexcept { return end_ns_; }

  /// Returns the sum within each of span_parts equally long parts of a time.
  std::vector<std::int64_t> sums_of_parts(std::int64_t from_ns, std::int64_t span_ns) const {
    std::vector<std::int64_t> sums(span_parts);
    const std::int64_t length_ns = span_ns / static_cast<std::int64_t>(span_parts) + 1;
    for (const auto& [start_ns, end_ns] : all_) {
      for (std::int64_t at_ns = start_ns; at_ns < end_ns;) {
        const std::int64_t part = (at_ns - from_ns) / length_ns;
        const std::int64_t until_ns = std::min(end_ns, from_ns + (part + 1) * length_ns);
        sums[std::min(static_cast<std::size_t>(part), span_parts - 1)] += until_ns - at_ns;
        at_ns = until_ns;
      }
    }
    return sums;
  }

 private:
  void add_new(std::int64_t start_ns, std::int64_t end_ns) {
    sum_ns_ += end_ns - start_ns;
    end_ns_ = end_ns;
    if (!keeps_) return;
    if (!all_.empty() && all_.back().second == start_ns) {
      all_.back().second = end_ns;
    } else {
      all_.emplace_back(start_ns, end_ns);
    }
  }

  std::vector<std::pair<std::int64_t, std::int64_t>> all_;
  std::int64_t sum_ns_ = 0;
  std::int64_t end_ns_ = 0;
  bool empty_ = true;
  bool keeps_;
};

/// Whether a copy is, or may be, from or to the host.
bool with_host(copy_kind kind) noexcept {
  return kind == copy_kind::to_device || kind == copy_kind::to_host || kind == copy_kind::other;
}

bool is_kernel(const device_work& work) noexcept {
  return work.kind == work_kind::compute || work.kind == work_kind::communication;
}

class device_sum {
 public:
  device_sum(const device_trace& trace, const call_starts& calls) : trace_(trace), calls_(calls) {}

  void add(std::size_t index) {
    const device_work& work = trace_.work[index];
    if (!began_) of_.start_ns = last_ns_ = work.start_ns;
    began_ = true;
    if (work.kind == work_kind::wait) {
      of_.waits.push_back({work.start_ns, work.end_ns, index});
      last_ns_ = std::max(last_ns_, work.end_ns);
      return;
    }
    const std::int64_t before_ns = all_.empty() ? of_.start_ns : all_.end_ns();
    if (all_.add(work.start_ns, work.end_ns) && before_ns < work.start_ns) {
      of_.gaps.push_back({before_ns, work.start_ns, index});
    }
    if (work.kind == work_kind::compute) compute_.add(work.start_ns, work.end_ns);
    if (work.kind == work_kind::communication) communication_.add(work.start_ns, work.end_ns);
    if (is_kernel(work)) kernels_.add(work.start_ns, work.end_ns);
    if (is_kernel(work) || with_host(work.copy)) {
      kernels_and_copies_.add(work.start_ns, work.end_ns);
    }
    if (work.copy != copy_kind::none) {
      copy_figures& copies = of_.copies[work.copy];
      copies.all.add(work);
      copies.by_memory[static_cast<std::size_t>(work.memory)].add(work);
    }
    add_to_stream(work);
  }

  device_figures finish(std::int64_t device) {
    of_.device = device;
    const std::int64_t worked_until_ns = all_.empty() ? of_.start_ns : all_.end_ns();
    last_ns_ = std::max(last_ns_, worked_until_ns);
    if (worked_until_ns < last_ns_) of_.gaps.push_back({worked_until_ns, last_ns_, SIZE_MAX});
    of_.span_ns = last_ns_ - of_.start_ns;
    of_.compute_ns = compute_.sum_ns();
    of_.communication_ns = communication_.sum_ns();
    of_.only_communication_ns = kernels_.sum_ns() - compute_.sum_ns();
    of_.idle_ns = of_.span_ns - all_.sum_ns();
    of_.only_communication_of_parts_ns = kernels_.sums_of_parts(of_.start_ns, of_.span_ns);
    const auto computed = compute_.sums_of_parts(of_.start_ns, of_.span_ns);
    for (std::size_t i = 0; i < span_parts; ++i) {
      of_.only_communication_of_parts_ns[i] -= computed[i];
    }
    of_.only_copies_ns = kernels_and_copies_.sum_ns() - kernels_.sum_ns();
    for (auto& [number, stream] : streams_) {
      stream.figures.number = number;
      stream.figures.busy_ns = stream.busy.sum_ns();
      // Works of a stream that overlap have negative gaps, as in HolisticTraceAnalysis.
      stream_idle& idle = stream.figures.idle;
      for (std::int64_t* const sum_ns :
           {&idle.host_wait_ns, &idle.kernel_wait_ns, &idle.other_ns}) {
        *sum_ns = std::max<std::int64_t>(*sum_ns, 0);
      }
      of_.streams.push_back(stream.figures);
    }
    return std::move(of_);
  }

 private:
  struct stream_sum {
    stream_figures figures;
    range_union busy;
    std::int64_t last_end_ns = 0;
  };

  void add_to_stream(const device_work& work) {
    stream_sum& stream = streams_[trace_.streams[work.stream].number];
    if (!stream.busy.empty()) {
      const std::int64_t gap_ns = work.start_ns - stream.last_end_ns;
      const std::size_t call = calls_.call_of(work);
      stream_idle& idle = stream.figures.idle;
      if (call != SIZE_MAX && trace_.calls[call].start_ns > stream.last_end_ns) {
        idle.host_wait_ns += gap_ns;
      } else {
        (gap_ns < kernel_wait_below_ns ? idle.kernel_wait_ns : idle.other_ns) += gap_ns;
      }
    }
    stream.last_end_ns = work.end_ns;
    stream.busy.add(work.start_ns, work.end_ns);
  }

  const device_trace& trace_;
  const call_starts& calls_;
  device_figures of_;
  std::int64_t last_ns_ = 0;  ///< end of the last work or wait
  bool began_ = false;
  range_union all_, communication_, kernels_and_copies_, compute_{true}, kernels_{true};
  std::map<std::int64_t, stream_sum> streams_;
};

}  // namespace

void leave_out_before(device_trace& trace, std::int64_t ns) {
  const call_starts calls(trace);
  const auto is_left_out = [&](const device_work& work) {
    const std::size_t call = calls.call_of(work);
    return (call == SIZE_MAX ? work.start_ns : trace.calls[call].start_ns) < ns;
  };
  trace.work.erase(std::remove_if(trace.work.begin(), trace.work.end(), is_left_out),
                   trace.work.end());
}

bool leave_out_last_step(device_trace& trace) {
  std::set<std::uint64_t> numbers;
  std::int64_t last_ns = INT64_MIN;
  for (const profiler_step& step : trace.steps) {
    numbers.insert(step.number);
    last_ns = std::max(last_ns, step.start_ns);
  }
  if (numbers.size() < 2) return false;
  const call_starts calls(trace);
  const auto is_known = [&](const device_work& work) { return calls.call_of(work) != SIZE_MAX; };
  const bool any_known = std::any_of(trace.work.begin(), trace.work.end(), is_known);
  const auto is_left_out = [&](const device_work& work) {
    if (!any_known) return work.start_ns >= last_ns;
    return !is_known(work) || trace.calls[calls.call_of(work)].start_ns >= last_ns;
  };
  if (std::all_of(trace.work.begin(), trace.work.end(), is_left_out)) return false;
  trace.work.erase(std::remove_if(trace.work.begin(), trace.work.end(), is_left_out),
                   trace.work.end());
  return true;
}

std::vector<device_figures> figures_of_devices(const device_trace& trace,
                                               const call_starts& calls) {
  std::vector<std::uint32_t> order(trace.work.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return trace.work[a].start_ns < trace.work[b].start_ns;
  });
  std::map<std::int64_t, device_sum> devices;
  for (const std::uint32_t index : order) {
    const std::int64_t device = trace.streams[trace.work[index].stream].device;
    devices.try_emplace(device, trace, calls).first->second.add(index);
  }
  std::vector<device_figures> figures;
  figures.reserve(devices.size());
  for (auto& [device, sum] : devices) figures.push_back(sum.finish(device));
  return figures;
}

}  // namespace lotus::tool
