#include "commands/report/report.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <sstream>

#include "accelerator/ranks.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "base/formats/json_writer.hpp"
#include "base/printable.hpp"
#include "commands/report/report_assets.hpp"
#include "commands/report/report_hardware.hpp"
#include "commands/report/report_run.hpp"
#include "commands/report/timeline/timeline_data.hpp"
#include "comparison/comparison.hpp"
#include "comparison/conclusion.hpp"
#include "curve/measured_runs.hpp"
#include "describe/described_table.hpp"
#include "describe/description.hpp"
#include "log/folder/loaders.hpp"
#include "log/operation_names.hpp"
#include "model/figures.hpp"
#include "model/run_data.hpp"
#include "model/stage_stats.hpp"
#include "model/tracks.hpp"
#include "threads/data/thread_samples.hpp"
#include "threads/page/thread_stacks.hpp"

namespace lotus::tool {
namespace {

/// Returns the command line that creates this page again.
std::string command_text(const report_options& options) {
  std::string text = "lotus-tool report";
  for (const std::string& dir : options.dirs) text += ' ' + shell_word(dir);
  if (options.prefix != default_prefix) text += " --prefix " + shell_word(options.prefix);
  if (options.skip_batches > 0) text += " --skip-batches " + std::to_string(options.skip_batches);
  if (!options.hardware.mapping.empty())
    text += " --mapping " + shell_word(options.hardware.mapping);
  for (const std::string& table : options.hardware.counters)
    text += " --counters " + shell_word(table);
  return text + part_options() + " -o " + shell_word(options.output);
}

/// Passes `json` to `write` in parts, and escapes characters that HTML's script element forbids.
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
      replace(i, 3, "\\u2028");  // U+2028 ends a line in JavaScript, and so does U+2029 below
    } else if (c == '\xE2' && json.substr(i, 3) == "\xE2\x80\xA9") {
      replace(i, 3, "\\u2029");
    }
  }
  write(json.substr(done));
}

/// Writes the page with every placeholder @KEY@ replaced. `first` comes before `data`, so that a
/// browser can show the first screen before it has read `data`.
void write_page(output_file& out, std::string_view first, std::string_view data) {
  struct part {
    std::string_view key;
    std::string_view text;
    bool from_logs = false;
  };
  const part parts[] = {{"@STYLE@", report_style},
                        {"@FIRST@", first, true},
                        {"@FIRST_SCRIPT@", report_first_script},
                        {"@DATA@", data, true},
                        {"@CHART@", report_chart_library},
                        {"@SCRIPT@", report_script}};
  std::string_view rest = report_page;
  for (const auto& [key, text, from_logs] : parts) {
    const std::size_t at = rest.find(key);
    out.write(rest.substr(0, at));
    if (from_logs) {
      escape_for_script(text, [&out](std::string_view segment) { out.write(segment); });
    } else {
      out.write(text);
    }
    rest.remove_prefix(at + key.size());
  }
  out.write(rest);
}

/// Returns the folder of a run with all its loaders.
const std::string& whole_folder(const run_files& run) {
  return run.info_dir.empty() ? run.dir : run.info_dir;
}

/// If the page shows exactly two runs, and both have the same loaders, writes their comparison, as
/// the command `compare` does. Otherwise writes nothing, for example for two loaders of one run.
void write_comparison_of(const std::vector<run_files>& shown, const report_options& options,
                         json_writer& json) {
  std::map<std::string, std::set<std::string>> loaders;  // by folder
  for (const run_files& run : shown) loaders[whole_folder(run)].insert(run.loader);
  if (loaders.size() != 2 || loaders.begin()->second != loaders.rbegin()->second) return;
  compared_sides sides;
  sides.before = {whole_folder(shown.front())};
  sides.after = {whole_folder(shown.back())};
  sides.prefix = options.prefix;
  sides.skip_batches = options.skip_batches;
  sides.most_operations = drawn_limits().names;
  // The messages are discarded, because they were already printed when the runs were read.
  std::ostringstream reported_already;
  diagnostic_log diagnostics(reported_already, true);
  json.newline().key("comparison");
  const comparison found = compare_runs(sides, diagnostics);
  write_value(json, shown_comparison{&sides, &found});
}

/// Writes the titles of a table's columns by key.
void write_titles(json_writer& json, std::string_view table, const object_description& of,
                  unsigned outputs = ~0U) {
  json.key(table).begin_object();
  for (const field* one : columns_of(of, outputs)) {
    if (!one->key.empty()) json.member(one->key, one->shown.title);
  }
  json.end_object();
}

/// Returns the runs in a folder. Returns none if the folder contains only samples of the threads of
/// a program without markers. Throws input_error.
std::vector<run_files> runs_in(const std::string& dir, const report_options& options,
                               const sampled_threads& threads, diagnostic_log& diagnostics) {
  try {
    return find_runs(dir, options.prefix, diagnostics);
  } catch (const input_error&) {
    if (!threads.has(dir)) throw;
    return {};
  }
}

}  // namespace

std::string script_safe(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  escape_for_script(json, [&out](std::string_view segment) { out += segment; });
  return out;
}

int run_report(const report_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  name_table names;
  hardware_data hardware;
  std::string first;  // JSON data that the first screen needs
  json_writer first_json(first);
  std::string data;
  json_writer json(data);
  bool empty = true;
  first_json.begin_object().member("version", LOTUS_TOOL_VERSION);
  first_json.member("command", command_text(options)).key("titles").begin_object();
  write_titles(first_json, "ops", description_of(static_cast<const figures*>(nullptr)), report_op);
  write_titles(first_json, "stages", description_of(static_cast<const stage_figures*>(nullptr)));
  first_json.end_object().key("runs").begin_array();
  json.begin_object().key("runs").begin_array();
  std::set<std::string> titles;
  std::vector<run_files> shown;
  std::vector<std::string> tables = options.hardware.counters;
  tables.insert(tables.end(), {options.hardware.mapping, options.hardware.elapsed});
  sampled_threads threads;
  const auto add_threads = [&](const std::string& dir) {
    if (!part_to_read()) return threads.add(dir, diagnostics);
    if (!has_thread_samples(dir)) return;
    diagnostics.note(dir +
                     ": the samples of its threads are left out, because they are stored as "
                     "sums of the whole run");
  };
  measured_runs others(options.prefix, options.dirs);
  for (const std::string& dir : options.dirs) {
    add_threads(dir);
    const std::vector<run_files> found = runs_in(dir, options, threads, diagnostics);
    refuse_input_as_output(options.output, found, tables, options.prefix);
    const auto limits = drawn_limits::for_runs(options.dirs.size() * found.size());
    std::map<std::string, std::string> title_of;  // by the folder of the run's information files
    for (const run_files& run : found) {
      std::string title = run_title(run, dir);
      if (!titles.insert(title).second) title = run.dir;
      run_data read = read_run_and_waits(run, {true, true, true}, diagnostics);
      if (read.empty() && read.aggregated.empty()) {
        diagnostics.warning(run.dir + ": ignored: its logs contain nothing usable");
        continue;
      }
      empty = false;
      add_threads(run.dir);
      write_run(first_json, json, read, title, options.skip_batches, names, limits, others,
                diagnostics);
      title_of.try_emplace(run.info_dir, title);
      shown.push_back(run);
    }
    for (const run_files& run : whole_runs(found)) {
      const auto title = title_of.find(run.info_dir);
      if (title != title_of.end()) hardware.add_samples_of_run(run, title->second);
    }
  }
  const int status = diagnostics.finish(options.strict);
  if (status != exit_fine) return status;
  if (empty && threads.empty()) throw input_error("the logs contain nothing usable");
  if (!options.hardware.mapping.empty()) {
    attribution_inputs wanted = options.hardware;
    wanted.prefix = options.prefix;
    if (wanted.elapsed.empty()) wanted.traces = options.dirs;
    hardware.add_mapping(wanted);
  }
  first_json.end_array().newline().key("threads");
  threads.write_first(first_json);
  write_comparison_of(shown, options, first_json);
  first_json.newline().key("op_names").begin_array();
  for (std::uint32_t n = 0; n < names.size(); ++n) first_json.value(names.name(n));
  first_json.end_array().end_object();
  json.end_array().newline().key("hardware");
  hardware.write(json);
  json.newline().key("thread_stacks");
  threads.write_stacks(json);
  json.end_object();
  output_file file(options.output, out);
  write_page(file, first, data);
  file.commit();
  return exit_fine;
}

}  // namespace lotus::tool
