#include "accelerator/analysis.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "accelerator/gap_causes.hpp"
#include "accelerator/trace/nsys_reader.hpp"

namespace lotus::tool {
namespace {

/// If no cause of idle time takes a larger share of the time than this, the verdict is
/// "device-busy".
constexpr double verdict_share = 0.05;
/// If devices do not work for at most this share of the time, the verdict is "device-busy", too.
constexpr double busy_share = 0.1;
/// The time before the first and after the last work counts if it is at least this share of the
/// whole time.
constexpr double edges_share = 0.2;

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

/// The time of the recorded steps or, if there are none, waits for batches. In it, a device has no
/// work before its first and after its last work.
struct recorded_time {
  std::int64_t start_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;
  std::map<std::int64_t, device_gap> devices;  ///< from the first to the last work of all steps
};

/// @param trace  with the work of all steps.
recorded_time time_of_recording(const device_trace& trace, const std::vector<idle_part>& steps) {
  recorded_time time;
  for (const idle_part& step : steps) {
    time.start_ns = std::min(time.start_ns, step.start_ns);
    time.end_ns = std::max(time.end_ns, step.end_ns);
  }
  if (steps.empty()) {
    for (const wait_range& wait : trace.waits) {
      time.start_ns = std::min(time.start_ns, wait.start_ns);
      time.end_ns = std::max(time.end_ns, wait.end_ns);
    }
  }
  for (const device_work& work : trace.work) {
    device_gap& frame = time.devices
                            .try_emplace(trace.streams[work.stream].device,
                                         device_gap{work.start_ns, work.end_ns, 0})
                            .first->second;
    frame.start_ns = std::min(frame.start_ns, work.start_ns);
    frame.end_ns = std::max(frame.end_ns, work.end_ns);
    if (steps.empty()) time.end_ns = std::max(time.end_ns, work.end_ns);
  }
  return time;
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
  sort_by_start(steps);
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

device_verdict verdict_of(const judged_time& judged) {
  const auto span = static_cast<double>(judged.span_ns);
  const std::int64_t unused_ns = judged.causes.sum() + judged.only_copies_ns;
  if (static_cast<double>(unused_ns) <= busy_share * span) return device_verdict::busy;
  device_verdict is = device_verdict::busy;
  auto most = static_cast<std::int64_t>(span * verdict_share);
  for (const device_verdict_row& row : all_device_verdicts) {
    if (judged.of(row.is) <= most) continue;
    most = judged.of(row.is);
    is = row.is;
  }
  return is;
}

class gap_analysis {
 public:
  gap_analysis(const device_trace& trace, const recorded_waits& recorded, const recorded_time& time,
               accelerator_analysis& found, bool leaves_out_start_up)
      : time_(time),
        trace_(trace),
        recorded_(recorded),
        found_(found),
        calls_(trace),
        timeline_(host_timeline(trace, recorded.ranges)),
        leaves_out_start_up_(leaves_out_start_up) {}

  void analyze(device_figures& device) {
    gap_causes causes(trace_, calls_, timeline_);
    const std::vector<bool> is_start_up = leaves_out_start_up_
                                              ? find_start_up(trace_, device.gaps)
                                              : std::vector<bool>(device.gaps.size());
    std::vector<cause_range> begun;  // parts of gaps that are start-up
    std::vector<cause_range> all;
    for (std::size_t i = 0; i < device.gaps.size(); ++i) {
      const std::vector<cause_range> parts = causes.of(device.gaps[i], device.waits);
      all.insert(all.end(), parts.begin(), parts.end());
      std::vector<cause_range>& kept = is_start_up[i] ? begun : judged_parts_;
      kept.insert(kept.end(), parts.begin(), parts.end());
      if (is_start_up[i]) ++found_.start_up.gaps;
    }
    for (const cause_range& part : begun) {
      found_.start_up.causes.add(part.cause, part.end_ns - part.start_ns);
    }
    add_edges(device);
    device.gaps = {};
    device.waits = {};
    add(all);
  }

  /// Finds the verdict, when all devices are analyzed.
  void judge() {
    judged_time judged;
    for (const device_figures& device : found_.devices) {
      judged.span_ns += device.span_ns;
      judged.only_copies_ns += device.only_copies_ns;
      judged.only_communication_ns += device.only_communication_ns;
    }
    judged.span_ns -= found_.start_up.causes.sum();
    for (const cause_range& part : judged_parts_) {
      judged.causes.add(part.cause, part.end_ns - part.start_ns);
    }
    for (const cause_range& part : edges_) judged.edges_ns += part.end_ns - part.start_ns;
    const std::size_t parts = found_.step_count > 0 ? found_.step_count : found_.batches.size();
    const double share = parts <= 2 ? verdict_share : edges_share;
    const auto edges = static_cast<double>(judged.edges_ns);
    if (edges > share * (edges + static_cast<double>(judged.span_ns))) {
      judged.span_ns += judged.edges_ns;
      for (const cause_range& part : edges_) {
        judged.causes.add(part.cause, part.end_ns - part.start_ns);
      }
      judged_parts_.insert(judged_parts_.end(), edges_.begin(), edges_.end());
      sort_by_start(edges_);
      add_to_parts(edges_);
    } else {
      judged.edges_ns = 0;
    }
    found_.judged = judged;
    found_.is = verdict_of(judged);
    const auto other = [&](const cause_range& part) {
      return row_of(found_.is).cause != part.cause;
    };
    judged_parts_.erase(std::remove_if(judged_parts_.begin(), judged_parts_.end(), other),
                        judged_parts_.end());
    found_.places = find_places(trace_, std::move(judged_parts_));
  }

 private:
  void add_edges(const device_figures& device) {
    gap_causes causes(trace_, calls_, timeline_);
    const auto add_edge = [&](const device_gap& gap) {
      const std::vector<cause_range> parts = causes.of(gap, {});
      edges_.insert(edges_.end(), parts.begin(), parts.end());
    };
    const device_gap& worked = time_.devices.at(device.device);
    if (time_.start_ns < worked.start_ns && worked.start_ns <= time_.end_ns) {
      const auto first =
          std::find_if(trace_.work.begin(), trace_.work.end(), [&](const device_work& work) {
            return work.start_ns == worked.start_ns &&
                   trace_.streams[work.stream].device == device.device;
          });
      add_edge({time_.start_ns, worked.start_ns,
                first == trace_.work.end()
                    ? SIZE_MAX
                    : static_cast<std::size_t>(first - trace_.work.begin())});
    }
    if (worked.end_ns < time_.end_ns && worked.end_ns >= time_.start_ns) {
      add_edge({worked.end_ns, time_.end_ns, SIZE_MAX});
    }
  }

  void add(const std::vector<cause_range>& parts) {
    cause_times& causes = found_.causes.emplace_back();
    for (const cause_range& part : parts) causes.add(part.cause, part.end_ns - part.start_ns);
    add_to_parts(parts);
    std::vector<path_part> path_parts = recorded_.path;
    for_each_overlap(parts, path_parts,
                     [&](const path_part& of, idle_cause cause, std::int64_t ns) {
                       if (cause == idle_cause::batch_wait) found_.late_ns[of.activity] += ns;
                     });
  }

  /// @param idle  in order of time.
  void add_to_parts(const std::vector<cause_range>& idle) {
    const auto add_to = [](idle_part& of, idle_cause cause, std::int64_t ns) {
      of.causes.add(cause, ns);
    };
    for_each_overlap(idle, found_.steps, add_to);
    for_each_overlap(idle, found_.batches, add_to);
  }

  const recorded_time& time_;
  const device_trace& trace_;
  const recorded_waits& recorded_;
  accelerator_analysis& found_;
  call_starts calls_;
  std::vector<cause_range> timeline_;
  bool leaves_out_start_up_;
  std::vector<cause_range> judged_parts_;
  std::vector<cause_range> edges_;  ///< before the first and after the last work of a device
};

}  // namespace

std::int64_t judged_time::of(device_verdict verdict) const noexcept {
  const std::optional<idle_cause> cause = row_of(verdict).cause;
  if (!cause) return 0;
  // A device that only copies does not compute, so this time counts as if it were idle.
  return causes.of(*cause) + (*cause == idle_cause::copy ? only_copies_ns : 0);
}

std::int64_t accelerator_analysis::sum(std::int64_t device_figures::*ns) const noexcept {
  std::int64_t sum_ns = 0;
  for (const device_figures& d : devices) sum_ns += d.*ns;
  return sum_ns;
}

cause_times accelerator_analysis::all_causes() const noexcept {
  cause_times sum;
  for (const cause_times& of : causes) sum.add(of);
  return sum;
}

cause_times accelerator_analysis::shown_causes() const noexcept {
  if (judged.edges_ns == 0) return all_causes();
  cause_times sum = judged.causes;
  sum.add(start_up.causes);
  return sum;
}

const late_activity* accelerator_analysis::latest() const {
  const auto most =
      std::max_element(late_ns.begin(), late_ns.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == late_ns.end() ? nullptr : &most->first;
}

std::optional<double> accelerator_analysis::at_most_times_as_fast() const {
  const std::int64_t rest_ns = judged.span_ns - judged.of(is);
  if (is == device_verdict::busy || rest_ns <= 0) return std::nullopt;
  return static_cast<double>(judged.span_ns) / static_cast<double>(rest_ns);
}

void for_each_trace(const std::string& path, time_rounding rounding,
                    const std::function<void(device_trace&&)>& use) {
  const auto use_mended = [&](device_trace&& trace) {
    mend_trace(trace);
    if (trace.work.empty()) throw broken_trace(path + ": all work of accelerators is impossible");
    use(std::move(trace));
  };
  if (!is_sqlite(path)) {
    use_mended(read_kineto_trace(path, rounding));
    return;
  }
  for (const std::optional<std::int64_t> process : processes_of_nsys(path)) {
    use_mended(read_nsys_database(path, process));
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
  found.all_ranks = trace.ranks;
  found.faults = trace.faults;
  found.loads_alone = trace.loads_alone;
  found.has_waits = run != nullptr || !trace.waits.empty();
  for (const host_thread& thread : trace.threads) found.processes.insert(thread.process);
  found.rounded = trace.fractional && options.rounding == time_rounding::whole_us;
  found.steps = steps_of(trace);
  recorded_time time = time_of_recording(trace, found.steps);
  if (!options.with_last_step && trace.ends_early) {
    found.without_last_step = leave_out_last_step(trace);
  }
  const std::size_t skip = std::min(options.skip_steps.value_or(0), found.steps.size());
  if (skip > 0 && skip < found.steps.size()) {
    leave_out_before(trace, found.steps[skip].start_ns);
    found.skipped_steps = skip;
  }
  const recorded_waits recorded =
      run != nullptr ? find_recorded_waits(*run, trace) : recorded_waits();
  found.devices = figures_of_devices(trace, call_starts(trace));
  found.first_ns = INT64_MAX;
  found.last_ns = INT64_MIN;
  for (const device_figures& d : found.devices) {
    found.first_ns = std::min(found.first_ns, trace.base_ns + d.start_ns);
    found.last_ns = std::max(found.last_ns, trace.base_ns + d.start_ns + d.span_ns);
  }
  const std::size_t left_out = found.skipped_steps + (found.without_last_step ? 1 : 0);
  found.step_count = count_steps(trace.steps) - std::min(left_out, count_steps(trace.steps));
  found.batches = batches_of(trace, recorded);
  if (found.without_last_step) time.end_ns = found.steps.back().start_ns;
  if (found.skipped_steps > 0) time.start_ns = found.steps[skip].start_ns;
  gap_analysis gaps(trace, recorded, time, found, !options.skip_steps);
  for (device_figures& device : found.devices) gaps.analyze(device);
  gaps.judge();
  return found;
}

}  // namespace lotus::tool
