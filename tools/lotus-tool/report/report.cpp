#include "report/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "base/json_writer.hpp"
#include "log/loaders.hpp"
#include "log/log_files.hpp"
#include "log/operation_names.hpp"
#include "model/distribution.hpp"
#include "model/figures.hpp"
#include "model/heap/leaks.hpp"
#include "model/quantities.hpp"
#include "model/run_data.hpp"
#include "model/stage_stats.hpp"
#include "model/times/kept_durations.hpp"
#include "model/tracks.hpp"
#include "report/report_assets.hpp"
#include "report/report_hardware.hpp"
#include "report/timeline_data.hpp"
#include "verdict/check.hpp"
#include "verdict/diagnosis.hpp"
#include "verdict/diagnosis_text.hpp"
#include "verdict/recorded_work.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t curve_points = 500;
constexpr std::size_t histogram_bins = 20;
constexpr std::size_t slowest_shown = 3;

/// The half decade, from 100 ns to 1000 s; what is outside counts in the first and the last.
std::size_t bin_of(double ns) {
  const double place = 2 * (std::log10(std::max(ns, 1.0)) - 2);
  return static_cast<std::size_t>(std::clamp(place, 0.0, histogram_bins - 1.0));
}

/// How many durations lie in each bin. Where not all are in memory, a bucket of under 1 % lies in
/// that of its beginning.
void write_histogram(json_writer& json, const kept_durations& durations) {
  std::uint64_t bins[histogram_bins] = {};
  if (durations.are_all()) {
    for (const std::int64_t ns : durations.values()) ++bins[bin_of(static_cast<double>(ns))];
  } else {
    for (std::size_t b = 0; b < durations.buckets().size(); ++b) {
      bins[bin_of(static_cast<double>(narrow_bucket::lowest(b)))] += durations.buckets()[b];
    }
  }
  json.begin_array();
  for (const std::uint64_t n : bins) json.value(n);
  json.end_array();
}

/// The sorted values; of very many, evenly spread ones with both ends.
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
  std::size_t bins[histogram_bins] = {};
  for (const duration_bucket& d : op.durations) bins[bin_of(d.ns)] += d.count;
  json.newline().begin_object().member("name", op.name);
  write_figures(json, figures_of(op), report_op, false);
  json.key("histogram").begin_array();
  for (const std::size_t n : bins) json.value(n);
  json.end_array().end_object();
}

/// Gives back the operation's durations.
void write_op(json_writer& json, op_samples& op) {
  std::string histogram;
  json_writer bins(histogram);
  write_histogram(bins, op.durations);
  json.newline().begin_object().member("name", op.name);
  write_figures(json, figures_of(op), report_op, false);
  json.key("histogram").raw(histogram).end_object();
}

void write_box(json_writer& json, std::vector<std::int64_t> values) {
  figures of;
  of.time = describe(values);
  json.begin_object();
  write_figures(json, of, report_quantity, false);
  json.end_object();
}

/// Everything the page shows of one run. `run` gives back its durations on the way.
void write_run(json_writer& json, std::string& text, run_data& run, const std::string& name,
               std::size_t skip_batches, name_table& names, const drawn_limits& limits) {
  diagnostic_log silent = diagnostic_log::silenced();  // what is odd about the logs was said
  const std::vector<bool> counted = counted_batches(run.batches, skip_batches);
  const auto values = [&](quantity of) { return values_of(run.batches, of, skip_batches); };
  // The operations first: what they take in memory is free then for the verdict.
  std::string ops;
  json_writer op_list(ops);
  op_list.begin_array();
  for (op_samples& op : run.ops) write_op(op_list, op);
  op_list.end_array();
  const judgement judged = diagnose_run(run, skip_batches, silent);
  json.newline().begin_object().member("name", name).member("dir", run.files->dir);
  if (!run.files->loader.empty()) json.member("loader", run.files->loader);
  json.member("batch_count", std::count(counted.begin(), counted.end(), true));
  json.key("verdict").raw(judged.found ? diagnosis_json(*judged.found) : "null");
  json.member("no_verdict", judged.why_not).key("checks");
  write_checks(json, judged.found ? judged.found->checks : failed_checks(run, look_at_work(run)));
  json.key("ops").raw(ops);
  json.newline().key("aggregated").begin_array();
  for (const aggregated_op& op : run.aggregated) write_aggregated(json, op);
  json.end_array();
  json.newline().key("stages").begin_array();
  for (const stage_stats& stage : describe_stages(run)) {
    json.newline().begin_object().member("name", stage.name);
    write_stage(json, stage, report_op);
    json.end_object();
  }
  json.end_array().key("through_stages").begin_array();
  for (const item_stats& of : describe_items(run, slowest_shown)) {
    json.newline().begin_object().member("name", of.name);
    write_figures(json, of, report_op, true);
    json.key("slowest").begin_array();
    for (std::size_t i = 0; i < of.slowest.size(); ++i) {
      const item& it = of.slowest[i];
      json.newline()
          .begin_object()
          .member("number", std::to_string(shown_number(it.number)))
          .member("epoch", it.pass);
      json.member("start_ns", it.life.start_ns).member("latency_ns", it.life.duration_ns());
      json.member("queueing_ns", it.queueing_ns);
      write_tree(json, of.trees[i]);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
  json.newline().key("async").begin_array();
  for (const async_stats& of : describe_async(run)) {
    json.newline().begin_object().member("name", of.name);
    write_figures(json, of, report_op, true);
    json.member("running_ns", of.running_ns).end_object();
  }
  json.end_array();
  json.newline().key("preprocess");
  write_box(json, values(quantity::preprocess));
  json.newline().key("waits_ns");
  write_curve(json, values(quantity::wait));
  json.newline().key("delays_ns");
  write_curve(json, values(quantity::delay));
  json.newline().key("leaks").begin_array();
  for (const leak& l : find_leaks(run.side.heap)) json.value(leak_text(l, run.names));
  json.end_array();
  if (run.records.dropped > 0) {
    json.newline().member("dropped", dropped_text(run.records));
  }
  if (run.records.whole_from_ns != 0) {
    json.newline().member("deleted", deleted_text(run.records));
  }
  json.newline().key("timeline");
  write_timeline(json, text, run, names, limits);
  json.end_object();
}

/// Hands `json` to `write` in pieces, with what may not stand in a script element escaped.
template <class Write>
void escape_for_script(std::string_view json, Write&& write) {
  std::size_t done = 0;
  const auto replace = [&](std::size_t at, std::size_t n, std::string_view with) {
    write(json.substr(done, at - done));
    write(with);
    done = at + n;
  };
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<') {
      replace(i, 1, "\\u003c");
    } else if (c == '>') {
      replace(i, 1, "\\u003e");
    } else if (c == '&') {
      replace(i, 1, "\\u0026");
    } else if (c == '\xE2' && json.substr(i, 3) == "\xE2\x80\xA8") {
      replace(i, 3, "\\u2028");  // it ends a line for JavaScript, and so does the next
    } else if (c == '\xE2' && json.substr(i, 3) == "\xE2\x80\xA9") {
      replace(i, 3, "\\u2029");
    }
  }
  write(json.substr(done));
}

/// Writes the page with every @KEY@ replaced.
void write_page(output_file& out, std::string_view data) {
  const std::pair<std::string_view, std::string_view> parts[] = {{"@STYLE@", report_style},
                                                                 {"@DATA@", data},
                                                                 {"@CHART@", report_chart_library},
                                                                 {"@SCRIPT@", report_script}};
  std::string_view rest = report_page;
  for (const auto& [key, text] : parts) {
    const std::size_t at = rest.find(key);
    out.write(rest.substr(0, at));
    if (text.data() == data.data()) {
      escape_for_script(data, [&out](std::string_view piece) { out.write(piece); });
    } else {
      out.write(text);
    }
    rest.remove_prefix(at + key.size());
  }
  out.write(rest);
}

}  // namespace

std::string script_safe(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  escape_for_script(json, [&out](std::string_view piece) { out += piece; });
  return out;
}

int run_report(const report_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  name_table names;
  hardware_data hardware;
  std::string data;
  json_writer json(data);
  bool empty = true;
  json.begin_object().key("runs").begin_array();
  std::set<std::string> titles;
  std::vector<std::string> tables = options.hardware.counters;
  tables.insert(tables.end(), {options.hardware.mapping, options.hardware.elapsed});
  for (const std::string& dir : options.dirs) {
    const std::vector<run_files> found = find_runs(dir, options.prefix, diagnostics);
    refuse_input_as_output(options.output, found, tables, options.prefix);
    const auto limits = drawn_limits::for_runs(options.dirs.size() * found.size());
    std::map<std::string, std::string> title_of;  // by where the processes tell of themselves
    for (const run_files& run : found) {
      std::string title = run_title(run, dir);
      if (!titles.insert(title).second) title = run.dir;
      run_data read = read_run(run, {true, true, true}, diagnostics);
      if (read.empty() && read.aggregated.empty()) {
        diagnostics.warning(run.dir + ": nothing usable in its logs, left out");
        continue;
      }
      empty = false;
      write_run(json, data, read, title, options.skip_batches, names, limits);
      title_of.try_emplace(run.info_dir, title);
    }
    for (const run_files& run : whole_runs(found)) {
      const auto title = title_of.find(run.info_dir);
      if (title != title_of.end()) hardware.add_samples_beside(run, title->second);
    }
  }
  const int status = diagnostics.finish(options.strict);
  if (status != exit_fine) return status;
  if (empty) throw input_error("nothing usable in the logs");
  if (!options.hardware.mapping.empty()) {
    attribution_inputs wanted = options.hardware;
    wanted.prefix = options.prefix;
    if (wanted.elapsed.empty()) wanted.traces = options.dirs;
    hardware.add_mapping(wanted);
  }
  json.end_array().newline().key("hardware");
  hardware.write(json);
  json.newline().key("op_names").begin_array();
  for (std::uint32_t n = 0; n < names.size(); ++n) json.value(names.name(n));
  json.end_array().end_object();
  output_file file(options.output, out);
  write_page(file, data);
  file.commit();
  return exit_fine;
}

}  // namespace lotus::tool
