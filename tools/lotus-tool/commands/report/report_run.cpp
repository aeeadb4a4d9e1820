#include "commands/report/report_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "aggregates/data/aggregated.hpp"
#include "base/statistics/distribution.hpp"
#include "commands/report/base64.hpp"
#include "commands/report/batch_histories.hpp"
#include "commands/report/report_curves.hpp"
#include "describe/description.hpp"
#include "findings/checks/check.hpp"
#include "findings/checks/recorded_work.hpp"
#include "findings/diagnosis.hpp"
#include "findings/gains.hpp"
#include "heap/data/heap_data.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"
#include "lotus/format/varint.hpp"
#include "model/figures.hpp"
#include "model/path/critical_path.hpp"
#include "model/quantities.hpp"
#include "model/stage_stats.hpp"
#include "model/times/kept_durations.hpp"
#include "waits/join/blocked_on.hpp"
#include "waits/join/sampled_waits.hpp"
#include "waits/stacks/unwound_stacks.hpp"

namespace lotus::tool {
namespace {

/// Returns the path's segments that belong to a thread. Successive segments of the same thread and
/// kind are joined.
std::vector<path_segment> thread_segments(const critical_path& path) {
  std::vector<path_segment> joined;
  for (const path_segment& s : path.segments) {
    if (!s.file) continue;
    if (!joined.empty() && joined.back().file == s.file && joined.back().end_ns == s.start_ns &&
        joined.back().kind == s.kind) {
      joined.back().end_ns = s.end_ns;
    } else {
      joined.push_back(s);
    }
  }
  return joined;
}

void keep_longest(std::vector<path_segment>& segments, std::size_t most) {
  std::vector<std::int64_t> durations;
  durations.reserve(segments.size());
  for (const path_segment& s : segments) durations.push_back(s.end_ns - s.start_ns);
  const auto shortest = durations.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(durations.begin(), shortest, durations.end(), std::greater<>());
  const std::int64_t limit_ns = *shortest;
  segments.erase(
      std::remove_if(segments.begin(), segments.end(),
                     [&](const path_segment& s) { return s.end_ns - s.start_ns <= limit_ns; }),
      segments.end());
}

/// Writes {"left_out":how many of the path's shortest segments are missing,"segments":base64}. For
/// each segment of a thread, in order of time, `segments` contains in LEB128 its start minus the
/// end of the previous segment (zigzag), its duration and the number of its track. Segments that
/// belong to no single thread are not written.
/// @param text  the text that `json` appends to.
/// @param most  maximum number of segments.
void write_path_segments(json_writer& json, std::string& text, const run_data& run,
                         const critical_path& path, std::size_t most) {
  std::vector<path_segment> segments = thread_segments(path);
  const std::size_t all = segments.size();
  if (all > most) keep_longest(segments, most);
  json.begin_object().member("left_out", all - segments.size()).key("segments").raw("\"");
  base64_writer bytes(text);
  std::int64_t before_ns = run.first_ns;
  for (const path_segment& s : segments) {
    bytes.number(lotus::detail::to_zigzag(s.start_ns - before_ns));
    bytes.number(static_cast<std::uint64_t>(s.end_ns - s.start_ns));
    bytes.number(s.file->value());
    before_ns = s.end_ns;
  }
  bytes.finish();
  text += '"';
  json.end_object();
}

std::string utc_text(std::int64_t time_ns) {
  const std::time_t seconds = time_ns / 1'000'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

/// Counts the complete records that killed processes left in their rings and that no log contains.
std::uint64_t recovered_lines(const run_files& run) {
  std::uint64_t lines = 0;
  for (const auto* list : {&run.files, &run.side_files}) {
    for (const log_file& file : *list) {
      lines += static_cast<std::uint64_t>(std::count(file.tail.begin(), file.tail.end(), '\n'));
    }
  }
  return lines;
}

/// Writes the members "facts":{"started":…,"length_ns":…,"hosts":[…],"ranks":…,"processes":…,
/// "threads":…,"cpus":…} and "quality":{"malformed":…,"written":…,"dropped":…,"recovered":…,
/// "aggregated":…}. Members that the logs do not contain are missing.
void write_facts(json_writer& json, const run_data& run) {
  const run_processes processes = run_processes::read(run.files->info_dir, run.files->earlier_info);
  std::set<std::string> hosts;
  std::set<std::string> commands;
  std::set<std::uint64_t> ranks;
  std::set<std::uint64_t> pids;
  std::set<std::uint64_t> threads;
  for (const log_file& file : run.files->files) {
    threads.insert(file.number);
    const process_info* const process = processes.process_of(file.number);
    if (process == nullptr) continue;
    pids.insert(process->pid);
    if (!process->host.empty()) hosts.insert(process->host);
    if (!process->command.empty()) commands.insert(process->command);
    if (process->rank) ranks.insert(*process->rank);
  }
  json.newline().key("facts").begin_object();
  if (run.first_ns < run.last_ns) {
    json.member("started", utc_text(run.first_ns)).member("length_ns", run.last_ns - run.first_ns);
  }
  json.key("hosts").begin_array();
  for (const std::string& host : hosts) json.value(host);
  json.end_array().key("commands").begin_array();
  for (const std::string& command : commands) json.value(command);
  json.end_array().member("ranks", ranks.size()).member("processes", pids.size());
  json.member("threads", threads.size()).member("operations", run.operations);
  if (run.cpus) json.member("cpus", run.cpus->count());
  json.end_object();
  std::uint64_t aggregated = 0;
  for (const aggregated_op& op : run.aggregated) aggregated += op.count;
  json.key("quality").begin_object().member("malformed", run.damaged_lines);
  json.member("written", run.records.written).member("dropped", run.records.dropped);
  json.member("recovered", recovered_lines(*run.files)).member("aggregated", aggregated);
  json.end_object();
}

constexpr std::size_t curve_points = 500;
constexpr std::size_t bins_a_decade = 48;
constexpr std::size_t histogram_bins = 10 * bins_a_decade;
constexpr std::size_t slowest_shown = 3;

/// Counts durations in bins from 100 ns to 1000 s; the first and last bins have no outer limit.
class histogram {
 public:
  void add(double ns, std::uint64_t count) {
    const double bin = double{bins_a_decade} * (std::log10(std::max(ns, 1.0)) - 2);
    const auto at = static_cast<std::size_t>(std::clamp(bin, 0.0, histogram_bins - 1.0));
    bins_[at] += count;
    if (count == 0) return;
    first_ = std::min(first_, at);
    end_ = std::max(end_, at + 1);
  }

  /// Writes {"first":number of the first non-empty bin,"counts":[…] up to the last such bin}.
  void write(json_writer& json) const {
    json.begin_object().member("first", first_).key("counts").begin_array();
    for (std::size_t bin = first_; bin < end_; ++bin) json.value(bins_[bin]);
    json.end_array().end_object();
  }

 private:
  std::array<std::uint64_t, histogram_bins> bins_{};
  // The first non-empty bin, and the bin after the last one. Looking for them in each histogram
  // takes long in a run with very many operations.
  std::size_t first_ = histogram_bins;
  std::size_t end_ = 0;
};

/// Returns the histogram of durations. If the durations are only known as buckets (less than 1 %
/// wide), each bucket counts in the bin that contains its lower end.
histogram histogram_of(const kept_durations& durations) {
  histogram counts;
  if (durations.are_all()) {
    for (const std::int64_t ns : durations.values()) counts.add(static_cast<double>(ns), 1);
  } else {
    for (std::size_t b = 0; b < durations.buckets().size(); ++b) {
      counts.add(static_cast<double>(narrow_bucket::lowest(b)), durations.buckets()[b]);
    }
  }
  return counts;
}

/// Writes the sorted values. If there are very many, writes evenly spaced ones including both ends.
void write_curve(json_writer& json, std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = std::min(values.size(), curve_points);
  json.begin_array();
  for (std::size_t i = 0; i < n; ++i) {
    json.value(values[n < 2 ? 0 : i * (values.size() - 1) / (n - 1)]);
  }
  json.end_array();
}

void write_aggregated(json_writer& json, const aggregated_op& op) {
  histogram counts;
  for (const duration_bucket& d : op.durations) counts.add(d.ns, d.count);
  json.newline().begin_object().member("name", op.name);
  write_figures(json, figures_of(op), report_op);
  json.key("histogram");
  counts.write(json);
  json.end_object();
}

void write_op(json_writer& json, const op_samples& op) {
  const histogram counts = histogram_of(op.durations);
  json.newline().begin_object().member("name", op.name);
  write_figures(json, figures_of(op), report_op);
  json.key("histogram");
  counts.write(json);
  json.end_object();
}

void write_box(json_writer& json, std::vector<std::int64_t> values) {
  figures of;
  of.time = describe(values);
  json.begin_object();
  write_figures(json, of, report_quantity);
  json.end_object();
}

/// Writes the operations and stages on the critical path, and the gain if each one were faster.
void write_bottlenecks(json_writer& json, const judgement& judged) {
  json.newline().key("path_gains").begin_array();
  if (judged.found) {
    for (const path_gain& a : judged.found->path_gains) {
      json.begin_object().member("name", a.path.name).member("ns", a.path.ns);
      json.member("gain", a.gain).member("gain_free", a.gain_free).end_object();
    }
  }
  json.end_array();
}

/// Writes what each operation was blocked on.
/// @param joined  the samples, if the diagnosis has joined them with operations.
void write_blocked_on(json_writer& json, const run_data& run, std::optional<run_blocked_on> joined,
                      diagnostic_log& diagnostics) {
  constexpr std::size_t max_entries = 5;
  if (!joined) joined = join_waits(run, diagnostics);
  name_stacks(*run.files, *joined, diagnostics);
  json.newline().key("blocked_on").begin_array();
  for (const scaled_waits& of : scale_waits(run, *joined)) {
    if (of.part != waiting_part::operation) continue;
    json.newline().begin_object().member("name", of.name).key("by").begin_array();
    for (std::size_t i = 0; i < std::min(of.by.size(), max_entries); ++i) {
      const blocked_on& one = of.by[i];
      json.begin_object().member("text", wait_phrase(one, of.name)).member("ns", one.ns);
      json.member("share", one.share).member("samples", one.samples);
      if (!one.calls.empty()) {
        json.key("stack");
        write_value(json, one.calls);
      }
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

void write_stages(json_writer& json, const run_data& run) {
  json.newline().key("stages").begin_array();
  for (const stage_stats& stage : describe_stages(run)) {
    json.newline().begin_object().member("name", stage.name);
    write_figures(json, stage, report_op);
    description_of(&stage.stage).write_members(json, stage.stage);
    json.end_object();
  }
  json.end_array().key("through_stages").begin_array();
  for (const item_stats& of : describe_items(run, slowest_shown)) {
    json.newline().begin_object().member("name", of.name);
    json.member("from_first_item", of.from_first_item);
    write_figures(json, of, report_op);
    json.key("slowest").begin_array();
    for (const slow_item& it : of.slowest) {
      json.newline()
          .begin_object()
          .member("number", std::to_string(shown_number(it.number)))
          .member("epoch", it.epoch);
      json.member("start_ns", it.extent.start_ns).member("latency_ns", it.extent.duration_ns());
      json.member("queueing_ns", it.queueing_ns);
      json.key("tree");
      write_value(json, it.tree);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
  json.newline().key("async").begin_array();
  for (const async_stats& of : describe_async(run)) {
    json.newline().begin_object().member("name", of.name);
    write_figures(json, of, report_op);
    json.member("running_ns", of.running_ns).end_object();
  }
  json.end_array();
}

}  // namespace

void write_run(json_writer& first, json_writer& json, std::string& text, run_data& run,
               const std::string& name, std::size_t skip_batches, name_table& names,
               const drawn_limits& limits, measured_runs& others, diagnostic_log& diagnostics) {
  diagnostic_log silent = diagnostic_log::silenced();  // the run's messages were already printed
  const std::vector<bool> counted = counted_batches(run.batches, skip_batches);
  const auto values = [&](quantity of) { return values_of(run.batches, of, skip_batches); };
  // The operations are written first, because this frees memory that the verdict then needs.
  std::string ops;
  json_writer op_list(ops);
  op_list.begin_array();
  const listed_operations listed(run, limits.names);
  for (std::uint32_t n = 0; n < run.ops.size(); ++n) {
    if (listed.has(n)) write_op(op_list, run.ops[n]);
    run.ops[n].durations = {};  // may need much memory
  }
  op_list.end_array();
  judgement judged = diagnose_run(run, skip_batches, silent);
  if (judged.found) look_at_accelerators(*judged.found, run, diagnostics);
  first.newline().begin_object().member("name", name).member("dir", run.files->dir);
  if (!run.files->loader.empty()) first.member("loader", run.files->loader);
  first.member("batch_count", std::count(counted.begin(), counted.end(), true));
  first.key("verdict");
  write_value(first, judged.found);
  first.member("no_verdict", text_of(judged.why_not)).key("checks");
  write_value(first, judged.found ? judged.found->checks : failed_checks(run, look_at_work(run)));
  write_facts(first, run);
  if (run.records.whole_from_ns != 0) {
    first.newline().member("deleted", deleted_text(run.records));
  }
  first.end_object();
  json.newline().begin_object();
  write_bottlenecks(json, judged);
  json.newline().key("curves");
  write_curves(json, run, judged, others);
  json.newline().key("ops").raw(ops).member("ops_note", listed.note());
  ops = std::string();
  json.newline().key("aggregated").begin_array();
  for (const aggregated_op& op : run.aggregated) write_aggregated(json, op);
  json.end_array();
  write_stages(json, run);
  write_blocked_on(
      json, run,
      judged.found ? std::make_optional(std::move(judged.found->blocked_on)) : std::nullopt,
      silent);
  json.newline().key("preprocess");
  write_box(json, values(quantity::preprocess));
  json.newline().key("waits_ns");
  write_curve(json, values(quantity::wait));
  json.newline().key("delays_ns");
  write_curve(json, values(quantity::delay));
  json.newline().key("leaks").begin_array();
  for (const leak& l : find_leaks(run.side.heap)) json.value(leak_text(l, run.names));
  json.end_array();
  json.newline().key("batches");
  write_batch_histories(json, text, run, judged.found ? &judged.found->path : nullptr,
                        limits.batches, names);
  json.newline().key("path");
  write_path_segments(json, text, run, judged.found ? judged.found->path : critical_path(),
                      limits.segments);
  json.newline().key("timeline");
  write_timeline(json, text, run, listed, names, limits);
  json.end_object();
}

}  // namespace lotus::tool
