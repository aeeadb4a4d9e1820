#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/viz/draw.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/nesting_lanes.hpp"
#include "commands/viz/view.hpp"
#include "log/shown_name.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/pipeline/side_figures.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// A number that increases and decreases over time, and is drawn as a counter.
class level {
 public:
  void up(std::int64_t at_ns) { changes_.emplace_back(at_ns, 1); }
  void down(std::int64_t at_ns) { changes_.emplace_back(at_ns, -1); }

  void draw(std::uint32_t pid, std::string_view name, const view& shown, trace_sink& sink) {
    // Sorting puts decreases before increases at the same time, so that the drawn value is never
    // higher than the true value.
    std::sort(changes_.begin(), changes_.end());
    std::int64_t value = 0;
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      value += changes_[i].second;
      const std::int64_t at_ns = changes_[i].first;
      const bool last_of_its_time = i + 1 == changes_.size() || changes_[i + 1].first != at_ns;
      if (last_of_its_time && shown.has_time(at_ns, at_ns)) sink.counter(pid, name, at_ns, value);
    }
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> changes_;
};

void draw_levels(const run_data& run, std::uint32_t pid, const view& shown, trace_sink& sink) {
  level ready;
  level busy;
  for (const preprocessing_span& span : run.batches.preprocessing_spans()) {
    if (span.stage != preprocess_stage) continue;
    busy.up(span.start_ns);
    busy.down(span.end_ns());
  }
  for (const batch& b : run.batches.all()) {
    const std::optional<time_span> preprocessing = run.batches.made(b);
    if (!preprocessing) continue;
    ready.up(preprocessing->end_ns);
    // If two hosts' clocks differ, a batch may seem to be received before it was preprocessed. Such
    // a batch is never counted as ready.
    const std::optional<std::int64_t> received_ns = run.batches.delivery_ns(b);
    if (received_ns) ready.down(std::max(*received_ns, preprocessing->end_ns));
  }
  ready.draw(pid, "batches ready", shown, sink);
  busy.draw(pid, "workers busy", shown, sink);
}

/// Maps the numbers of the processes that recorded counters to their numbers in the trace.
class process_tracks {
 public:
  explicit process_tracks(const run_tracks& tracks) : tracks_(tracks) {}

  template <class Recorded>
  void know(const Recorded& r) {
    if (r.file) pids_.try_emplace(r.process, tracks_.of_file[r.file->value()].pid);
  }
  /// Returns the number of a process in the trace. For a process that know() was not called for,
  /// returns the number of the run's first process.
  std::uint32_t of(std::uint64_t process) const {
    const auto at = pids_.find(process);
    return at == pids_.end() ? tracks_.pid : at->second;
  }

 private:
  const run_tracks& tracks_;
  std::map<std::uint64_t, std::uint32_t> pids_;
};

}  // namespace

void draw_counters(const run_data& run, const run_tracks& tracks, const view& shown,
                   trace_sink& sink) {
  draw_levels(run, tracks.pid, shown, sink);
  process_tracks processes(tracks);
  for (const counter_value& c : run.side.counters) processes.know(c);
  for (const counter_value& c : run.side.counters) {
    if (!shown.has_time(c.time_ns, c.time_ns)) continue;
    const std::string_view name = run.names.name(c.name);
    sink.counter(processes.of(c.process), shown_name(name), c.time_ns, c.value);
  }
}

void draw_async(const run_data& run, const run_tracks& tracks, view& shown, name_table& names,
                std::uint64_t& id, trace_sink& sink) {
  if (shown.is_chosen()) return;
  process_tracks processes(tracks);
  for (const async_segment& p : run.side.segments) processes.know(p);
  // For each process and name, the lanes (rows) of asynchronous operations.
  std::map<std::pair<std::uint32_t, std::uint32_t>, first_free_lane> lanes;
  for (const async_operation& op : async_operations_of(run.side)) {
    if (!shown.has_time(op.extent.start_ns, op.extent.end_ns)) continue;
    if (!shown.has_name(names.id_of_decoded(run.names.name(op.name)), names)) continue;
    async_event event;
    event.pid = processes.of(op.process);
    const std::string name = shown_name(run.names.name(op.name));
    event.name = name;
    event.id = id++;
    event.extent = op.extent;
    std::int64_t last_ns = op.extent.start_ns;
    for (const std::uint32_t n : op.segments) {
      const async_segment& segment = run.side.segments[n];
      const time_span span{std::max(segment.start_ns, last_ns),
                           std::max(segment.end_ns(), last_ns)};
      event.running.push_back(span);
      last_ns = span.end_ns;
    }
    event.lane = static_cast<std::uint32_t>(
        lanes[{event.pid, op.name}].take(op.extent.start_ns, op.extent.end_ns));
    sink.async(event);
  }
}

void draw_off_cpu(const run_data& run, std::size_t file, track where, const view& shown,
                  trace_sink& sink) {
  for (const off_cpu_interval& s : run.side.off_cpu[file].intervals()) {
    if (s.duration_ns() <= 0 || !shown.has_interval(file, s.start_ns, s.end_ns)) continue;
    constexpr std::string_view names[] = {"blocked", "waits for CPU", "off the CPU"};
    slice_event event{where, "cpu", names[static_cast<std::size_t>(reason_of(s))], s.start_ns,
                      s.duration_ns()};
    if (s.run_queue_ns >= 0) {
      const std::int64_t run_queue_ns = std::min(s.run_queue_ns, s.duration_ns());
      event.arguments.add("run_queue_ns", static_cast<std::uint64_t>(run_queue_ns));
      event.arguments.add("blocked_ns", static_cast<std::uint64_t>(s.duration_ns() - run_queue_ns));
    }
    sink.slice(event);
  }
}

range_drawer::range_drawer(const run_data& run, std::size_t file, const view& shown) : run_(run) {
  for (const named_range& r : run.side.ranges) {
    const std::size_t of = r.file ? r.file->value() : 0;
    if (of == file && shown.has_interval(file, r.start_ns, r.end_ns())) lanes_.keep(r);
  }
}

void range_drawer::draw_lane(track where, trace_sink& sink) const {
  lanes_.for_each([&](const named_range& r) {
    // If the range has a number, its name may end with a separator, such as "_" in "iteration_".
    // The separator is removed, because the number becomes an argument of the slice.
    std::string name = shown_name(run_.names.name(r.name));
    while (r.number >= 0 && name.size() > 1 && (name.back() == '_' || name.back() == ' ')) {
      name.pop_back();
    }
    slice_event event{where, "range", name, r.start_ns, r.duration_ns};
    if (r.number >= 0) event.arguments.add("number", static_cast<std::uint64_t>(r.number));
    sink.slice(event);
  });
}

}  // namespace lotus::tool
