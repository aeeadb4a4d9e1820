#include "commands/report/report_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
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
/// @param most  maximum number of segments.
void write_path_segments(json_writer& json, const run_data& run, const critical_path& path,
                         std::size_t most) {
  std::vector<path_segment> segments = thread_segments(path);
  const std::size_t all = segments.size();
  if (all > most) keep_longest(segments, most);
  json.begin_object().member("left_out", all - segments.size()).key("segments");
  base64_writer bytes(json);
  std::int64_t before_ns = run.first_ns;
  for (const path_segment& s : segments) {
    bytes.number(lotus::detail::to_zigzag(s.start_ns - before_ns));
    bytes.number(static_cast<std::uint64_t>(s.end_ns - s.start_ns));
    bytes.number(s.file->value());
    before_ns = s.end_ns;
  }
  bytes.finish();
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

/// The processes and threads of a run.
struct page_facts {
  explicit page_facts(const run_data& of) : run(&of) {
    const run_processes known = run_processes::read(of.files->info_dir, of.files->earlier_info);
    for (const log_file& file : of.files->files) {
      threads.insert(file.number);
      const process_info* const process = known.process_of(file.number);
      if (process == nullptr) continue;
      pids.insert(process->pid);
      if (!process->host.empty()) hosts.insert(process->host);
      if (!process->command.empty()) commands.insert(process->command);
      if (process->rank) ranks.insert(*process->rank);
    }
  }

  const run_data* run;
  std::set<std::string> hosts;
  std::set<std::string> commands;
  std::set<std::uint64_t> ranks;
  std::set<std::uint64_t> pids;
  std::set<std::uint64_t> threads;
};

const description<page_facts>& description_of(const page_facts*) {
  using f = const page_facts&;
  using texts = std::vector<std::string>;
  const auto has_records = [](f of) { return of.run->first_ns < of.run->last_ns; };
  static const description<page_facts> all(
      "facts", "what ran",
      {
          {"started", [](f of) { return utc_text(of.run->first_ns); }, "time of the first record",
           has_records},
          {"length_ns", [](f of) { return of.run->last_ns - of.run->first_ns; },
           "from the first record to the last", has_records},
          {"hosts", [](f of) { return texts(of.hosts.begin(), of.hosts.end()); }, "the hosts"},
          {"commands", [](f of) { return texts(of.commands.begin(), of.commands.end()); },
           "the command lines"},
          {"ranks", [](f of) { return of.ranks.size(); }, "number of ranks"},
          {"processes", [](f of) { return of.pids.size(); }, "number of processes"},
          {"threads", [](f of) { return of.threads.size(); }, "number of threads with a log"},
          {"operations", [](f of) { return of.run->operations; }, "number of recorded calls"},
          {"cpus", [](f of) { return of.run->cpus->count(); }, "CPUs that the run could use",
           [](f of) { return of.run->cpus.has_value(); }},
      });
  return all;
}

/// Writes the member "quality":{"malformed":…,"written":…,"dropped":…,"recovered":…,
/// "aggregated":…}.
void write_quality(json_writer& json, const run_data& run) {
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
  explicit histogram(const std::vector<duration_bucket>& durations) {
    for (const duration_bucket& d : durations) add(d.ns, d.count);
  }
  /// If the durations are only known as buckets (less than 1 % wide), each bucket counts in the bin
  /// that contains its lower end.
  explicit histogram(const kept_durations& durations) {
    if (durations.are_all()) {
      for (const std::int64_t ns : durations.values()) add(static_cast<double>(ns), 1);
    } else {
      for (std::size_t b = 0; b < durations.buckets().size(); ++b) {
        add(static_cast<double>(narrow_bucket::lowest(b)), durations.buckets()[b]);
      }
    }
  }

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

/// @param op  an op_samples or aggregated_op.
template <class Op>
void write_op(json_writer& json, const Op& op) {
  json.newline().begin_object();
  write_figures(json, figures_of(op), report_op);
  json.key("histogram");
  histogram(op.durations).write(json);
  json.end_object();
}

void write_box(json_writer& json, std::vector<std::int64_t> values) {
  figures of;
  of.time = describe(values);
  json.begin_object();
  write_figures(json, of, report_quantity);
  json.end_object();
}

/// Returns how many times as fast the run would be if an operation or stage on the critical path
/// were 1.25 times as fast, by name.
std::map<std::string, double> gains_of(const judgement& judged) {
  std::map<std::string, double> gains;
  if (!judged.found) return gains;
  for (const path_gain& one : judged.found->path_gains) gains.emplace(one.path.name, one.gain);
  return gains;
}

/// A thing that an operation was blocked on.
struct worded_wait : blocked_on {
  std::string text;
};

const description<worded_wait>& description_of(const worded_wait*) {
  static const auto all =
      description<worded_wait>("wait", "a thing that an operation was blocked on",
                               {{"text", &worded_wait::text, "in words"}})
          .with_base(description_of(static_cast<const blocked_on*>(nullptr)));
  return all;
}

/// Returns what each operation was blocked on, the most frequent first.
/// @param joined  the samples, if the diagnosis has joined them with operations.
std::map<std::string, std::vector<worded_wait>> waits_of_operations(
    const run_data& run, std::optional<run_blocked_on> joined, diagnostic_log& diagnostics) {
  constexpr std::size_t max_entries = 5;
  if (!joined) joined = join_waits(run, diagnostics);
  name_stacks(*run.files, *joined, diagnostics);
  std::map<std::string, std::vector<worded_wait>> waits;
  for (const scaled_waits& of : scale_waits(run, *joined)) {
    if (of.part != waiting_part::operation) continue;
    for (std::size_t i = 0; i < std::min(of.by.size(), max_entries); ++i) {
      waits[of.name].push_back({of.by[i], wait_phrase(of.by[i], of.name)});
    }
  }
  return waits;
}

std::vector<std::string> numbers_of_slowest(const item_stats& of) {
  std::vector<std::string> numbers;
  numbers.reserve(of.slowest.size());
  for (const slow_item& it : of.slowest) {
    numbers.push_back(std::to_string(shown_number(it.number)));
  }
  return numbers;
}

/// Writes a list of described objects.
template <class T>
void write_list(json_writer& json, std::string_view key, const std::vector<T>& all,
                const description<T>& of) {
  json.newline().key(key).list(all, [&](const T& one) {
    json.newline().begin_object();
    of.write_members(json, one);
    json.end_object();
  });
}

}  // namespace

void write_run(json_writer& first, json_writer& json, run_data& run, const std::string& name,
               std::size_t skip_batches, name_table& names, const drawn_limits& limits,
               measured_runs& others, diagnostic_log& diagnostics) {
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
  write_value(first.newline().key("facts"), page_facts(run));
  write_quality(first, run);
  if (run.records.whole_from_ns != 0) {
    first.newline().member("deleted", deleted_text(run.records));
  }
  first.end_object();
  json.newline().begin_object();
  write_value(json.key("path_gains"), gains_of(judged));
  json.newline().key("curves");
  write_curves(json, run, judged, others);
  json.newline().key("ops").raw(ops).member("ops_note", listed.note());
  ops = std::string();
  json.newline().key("aggregated").list(run.aggregated, [&](const auto& op) {
    write_op(json, op);
  });
  write_list(json, "stages", describe_stages(run), stage_columns(report_op));
  write_list(
      json, "through_stages", describe_items(run, slowest_shown),
      item_columns(report_op).with(
          {{"from_first_item", &item_stats::from_first_item,
            "whether a batch begins with the first item that became part of it"},
           {"numbers", numbers_of_slowest, "of the slowest, as texts: they may have 64 bits"}}));
  write_list(json, "async", describe_async(run), async_columns(report_op));
  write_value(
      json.newline().key("blocked_on"),
      waits_of_operations(
          run,
          judged.found ? std::make_optional(std::move(judged.found->blocked_on)) : std::nullopt,
          silent));
  json.newline().key("preprocess");
  write_box(json, values(quantity::preprocess));
  json.newline().key("waits_ns");
  write_curve(json, values(quantity::wait));
  json.newline().key("delays_ns");
  write_curve(json, values(quantity::delay));
  json.newline().key("leaks").list(find_leaks(run.side.heap),
                                   [&](const leak& l) { json.value(leak_text(l, run.names)); });
  json.newline().key("batches");
  write_batch_histories(json, run, judged.found ? &judged.found->path : nullptr, limits.batches,
                        names);
  json.newline().key("path");
  write_path_segments(json, run, judged.found ? judged.found->path : critical_path(),
                      limits.segments);
  json.newline().key("timeline");
  write_timeline(json, run, listed, names, limits);
  json.end_object();
}

}  // namespace lotus::tool
