#include "accelerator/analysis.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "accelerator/recorded_waits.hpp"
#include "accelerator/trace/nsys_reader.hpp"

namespace lotus::tool {
namespace {

/// After the host has launched a kernel or copy, the device normally starts it within this time. If
/// it starts later, the device was waiting for something else.
constexpr std::int64_t queue_ns = 30'000;
/// If no cause of idle time takes a larger share of the time than this, the verdict is
/// "device-busy".
constexpr double verdict_share = 0.05;

/// Finds the causes of the gaps in the work of one device.
class gap_attribution {
 public:
  gap_attribution(const device_trace& trace, const call_starts& calls,
                  const std::vector<cause_range>& timeline)
      : trace_(trace), calls_(calls), host_(timeline) {}

  void add(const device_gap& gap) {
    const device_work& next = trace_.work[gap.next];
    const std::size_t call = calls_.call_of(next);
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
    if (ordered_ns < gap.end_ns) add_ordered(ordered_ns, gap, trace_.calls[call], next);
  }

  std::vector<cause_range> take() { return std::move(parts_); }

 private:
  /// Adds a part of a gap (a time in which the device was idle) with the activity of the host
  /// during this part. If the device became idle because the host waited for it, the launches right
  /// after that wait only give the idle device new work. Therefore they get the cause of the wait.
  /// @param first  whether this is the first part of the gap.
  void add_part(std::int64_t start_ns, std::int64_t end_ns, idle_cause cause, bool first) {
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
  void add_ordered(std::int64_t from_ns, const device_gap& gap, const runtime_call& call,
                   const device_work& next) {
    idle_cause cause = launch_cause_;
    if (next.copy == copy_kind::to_device) cause = idle_cause::copy;
    if (next.copy == copy_kind::to_host) cause = idle_cause::synchronization;
    const std::int64_t called_ns = std::clamp(call.end_ns, from_ns, gap.end_ns);
    push(from_ns, called_ns, cause);
    // If launched work does not start for a long time, it waits for an event of another stream or
    // for another device.
    const bool waits_on_device = gap.end_ns - called_ns >= queue_ns && next.copy == copy_kind::none;
    push(called_ns, gap.end_ns, waits_on_device ? idle_cause::synchronization : cause);
  }

  void push(std::int64_t start_ns, std::int64_t end_ns, idle_cause cause) {
    if (start_ns < end_ns) parts_.push_back({start_ns, end_ns, cause});
  }

  const device_trace& trace_;
  const call_starts& calls_;
  timeline_cursor host_;
  idle_cause launch_cause_ = idle_cause::launch;
  std::vector<cause_range> parts_;
};

/// Calls `use(range, cause, ns)` for each part and range that overlap, with the part's cause and
/// the length of the overlap. Both lists must be in order of time.
template <class Range, class Use>
void for_each_overlap(const std::vector<cause_range>& parts, std::vector<Range>& ranges, Use use) {
  std::size_t from = 0;
  for (const cause_range& part : parts) {
    while (from < ranges.size() && ranges[from].end_ns <= part.start_ns) ++from;
    for (std::size_t i = from; i < ranges.size() && ranges[i].start_ns < part.end_ns; ++i) {
      const std::int64_t start_ns = std::max(part.start_ns, ranges[i].start_ns);
      const std::int64_t end_ns = std::min(part.end_ns, ranges[i].end_ns);
      if (start_ns < end_ns) use(ranges[i], part.cause, end_ns - start_ns);
    }
  }
}

std::size_t count_steps(const std::vector<profiler_step>& steps) {
  std::set<std::uint64_t> numbers;
  for (const profiler_step& step : steps) numbers.insert(step.number);
  return numbers.size();
}

std::vector<idle_part> steps_of(const device_trace& trace) {
  std::vector<idle_part> steps;
  steps.reserve(trace.steps.size());
  for (const profiler_step& step : trace.steps) {
    steps.push_back({step.number, 0, step.start_ns, step.end_ns, {}});
  }
  std::sort(steps.begin(), steps.end(),
            [](const idle_part& a, const idle_part& b) { return a.start_ns < b.start_ns; });
  return steps;
}

/// Returns the starts of the batches that a trace shows: each wait begins a batch. A wait inside
/// another wait is not counted, because both Lotus and PyTorch's profiler may have recorded the
/// same wait.
std::vector<batch_start> starts_of(std::vector<wait_range> waits) {
  std::sort(waits.begin(), waits.end(), [](const wait_range& a, const wait_range& b) {
    return std::tie(a.start_ns, b.end_ns) < std::tie(b.start_ns, a.end_ns);
  });
  std::vector<batch_start> starts;
  std::int64_t end_ns = INT64_MIN;
  for (const wait_range& wait : waits) {
    const bool inside = wait.end_ns <= end_ns;
    if (!inside) starts.push_back({wait.start_ns, starts.size(), 0});
    if (wait.batch) starts.back().number = *wait.batch;
    end_ns = std::max(end_ns, wait.end_ns);
  }
  return starts;
}

std::vector<idle_part> batches_of(const device_trace& trace, const recorded_waits& recorded) {
  const std::vector<batch_start> starts =
      recorded.batches.empty() ? starts_of(trace.waits) : recorded.batches;
  std::vector<idle_part> batches;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t end_ns = i + 1 < starts.size() ? starts[i + 1].at_ns : INT64_MAX;
    batches.push_back({starts[i].number, starts[i].epoch, starts[i].at_ns, end_ns, {}});
  }
  return batches;
}

device_verdict verdict_of(const accelerator_analysis& of) {
  const cause_times causes = of.all_causes();
  const auto span = static_cast<double>(of.span_ns());
  device_verdict is = device_verdict::busy;
  auto most = static_cast<std::int64_t>(span * verdict_share);
  const auto consider = [&](device_verdict verdict, std::int64_t ns) {
    if (ns <= most) return;
    most = ns;
    is = verdict;
  };
  consider(device_verdict::batch_wait, causes.of(idle_cause::batch_wait));
  // A device that only copies does not compute, so this time counts as if it were idle.
  consider(device_verdict::copy, causes.of(idle_cause::copy) + of.only_copies_ns());
  consider(device_verdict::synchronization, causes.of(idle_cause::synchronization));
  consider(device_verdict::launch, causes.of(idle_cause::launch));
  consider(device_verdict::host, causes.of(idle_cause::host));
  return is;
}

}  // namespace

std::string_view device_verdict_name(device_verdict verdict) noexcept {
  switch (verdict) {
    case device_verdict::busy:
      return "device-busy";
    case device_verdict::batch_wait:
      return "input-bound";
    case device_verdict::copy:
      return "copy-bound";
    case device_verdict::synchronization:
      return "synchronization-bound";
    case device_verdict::launch:
      return "launch-bound";
    case device_verdict::host:
      break;
  }
  return "host-bound";
}

std::int64_t accelerator_analysis::span_ns() const noexcept {
  std::int64_t sum_ns = 0;
  for (const device_figures& d : devices) sum_ns += d.span_ns;
  return sum_ns;
}

std::int64_t accelerator_analysis::idle_ns() const noexcept {
  std::int64_t sum_ns = 0;
  for (const device_figures& d : devices) sum_ns += d.idle_ns;
  return sum_ns;
}

std::int64_t accelerator_analysis::only_copies_ns() const noexcept {
  std::int64_t sum_ns = 0;
  for (const device_figures& d : devices) sum_ns += d.only_copies_ns;
  return sum_ns;
}

cause_times accelerator_analysis::all_causes() const noexcept {
  cause_times sum;
  for (const cause_times& of : causes) sum.add(of);
  return sum;
}

std::string accelerator_analysis::latest() const {
  const auto most =
      std::max_element(late_ns.begin(), late_ns.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == late_ns.end() ? std::string() : most->first;
}

std::int64_t accelerator_analysis::own_ns() const noexcept {
  std::int64_t sum_ns = 0;
  for (const device_figures& d : devices) sum_ns += d.span_ns - d.only_communication_ns;
  return sum_ns;
}

void for_each_trace(const std::string& path, time_rounding rounding,
                    const std::function<void(device_trace&&)>& use) {
  if (!is_sqlite(path)) {
    use(read_kineto_trace(path, rounding));
    return;
  }
  for (const std::optional<std::int64_t> process : processes_of_nsys(path)) {
    use(read_nsys_database(path, process));
  }
}

bool is_of_run(const device_trace& trace, const run_data& run) noexcept {
  if (run.first_ns > run.last_ns) return false;
  return std::any_of(trace.work.begin(), trace.work.end(), [&](const device_work& work) {
    return work.end_ns + trace.base_ns >= run.first_ns &&
           work.start_ns + trace.base_ns <= run.last_ns;
  });
}

accelerator_analysis analyze_accelerator(device_trace trace, const analysis_options& options,
                                         const run_data* run) {
  accelerator_analysis found;
  found.path = trace.path;
  found.rank = trace.rank;
  if (run != nullptr) found.logs = run->files->dir;
  for (const host_thread& thread : trace.threads) found.processes.insert(thread.process);
  found.rounded = trace.fractional && options.rounding == time_rounding::whole_us;
  if (!options.with_last_step && trace.ends_early) {
    found.without_last_step = leave_out_last_step(trace);
  }
  const recorded_waits recorded =
      run != nullptr ? find_recorded_waits(*run, trace) : recorded_waits();
  const call_starts calls(trace);
  found.devices = figures_of_devices(trace, calls);
  found.first_ns = INT64_MAX;
  found.last_ns = INT64_MIN;
  for (const device_figures& d : found.devices) {
    found.first_ns = std::min(found.first_ns, trace.base_ns + d.start_ns);
    found.last_ns = std::max(found.last_ns, trace.base_ns + d.start_ns + d.span_ns);
  }
  const std::vector<cause_range> timeline = host_timeline(trace, recorded.ranges);
  found.steps = steps_of(trace);
  found.step_count = count_steps(trace.steps) - (found.without_last_step ? 1 : 0);
  found.batches = batches_of(trace, recorded);
  for (device_figures& device : found.devices) {
    gap_attribution attribution(trace, calls, timeline);
    for (const device_gap& gap : device.gaps) attribution.add(gap);
    device.gaps = {};
    const std::vector<cause_range> parts = attribution.take();
    cause_times& causes = found.causes.emplace_back();
    for (const cause_range& part : parts) causes.add(part.cause, part.end_ns - part.start_ns);
    const auto add_to = [](idle_part& of, idle_cause cause, std::int64_t ns) {
      of.causes.add(cause, ns);
    };
    for_each_overlap(parts, found.steps, add_to);
    for_each_overlap(parts, found.batches, add_to);
    std::vector<path_part> path_parts = recorded.path;
    for_each_overlap(parts, path_parts,
                     [&](const path_part& of, idle_cause cause, std::int64_t ns) {
                       if (cause == idle_cause::batch_wait) found.late_ns[of.name] += ns;
                     });
  }
  found.is = verdict_of(found);
  return found;
}

}  // namespace lotus::tool
