#include "commands/viz/viz.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "accelerator/accelerator_text.hpp"
#include "accelerator/ranks.hpp"
#include "accelerator/trace/torch_trace.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "base/nearest.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "commands/viz/compat_viz.hpp"
#include "commands/viz/draw.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/formats/viz_formats.hpp"
#include "findings/diagnosis.hpp"
#include "findings/screen/first_screen.hpp"
#include "log/operation_names.hpp"
#include "log/shown_name.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"
#include "model/tracks.hpp"
#include "waits/join/sampled_waits.hpp"

namespace lotus::tool {
namespace {

struct run_verdict {
  diagnosis diagnosed;
  std::vector<path_activity> path;  ///< in order of time; adjacent equal activities are joined
};

/// Returns the activities on the critical path in order of time; adjacent equal ones are joined.
std::vector<path_activity> activities_in_order(const run_data& run) {
  std::vector<path_activity> activities;
  find_critical_path(run, &activities);
  sort_by_start(activities);
  std::vector<path_activity> joined;
  for (const path_activity& a : activities) {
    if (!joined.empty() && joined.back().end_ns == a.start_ns && joined.back().kind == a.kind &&
        joined.back().name == a.name && joined.back().file == a.file) {
      joined.back().end_ns = a.end_ns;
    } else {
      joined.push_back(a);
    }
  }
  return joined;
}

std::string run_time_with(const shown_advice& advice) {
  return change_of(advice) + ": run time " + human_time(advice.now_ns) + " -> " +
         human_time(advice.then_ns) + " (" + human_time(advice.low_ns) + " to " +
         human_time(advice.high_ns) + ")";
}

void draw_headline(const run_data& run, const first_screen& screen, track where, trace_sink& sink) {
  std::vector<std::pair<std::string, std::string>> texts;
  const auto add_list = [&texts](const std::string& name, const std::vector<std::string>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      texts.emplace_back(list.size() == 1 ? name : name + ' ' + std::to_string(i + 1), list[i]);
    }
  };
  if (!screen.why.empty()) texts.emplace_back("reason", text_of(screen.why));
  add_list("warning", texts_of(screen.warnings));
  std::vector<std::string> suggestions;
  suggestions.reserve(screen.advice.size());
  for (const shown_advice& advice : screen.advice) suggestions.push_back(run_time_with(advice));
  add_list("suggestion", suggestions);
  add_list("little or no gain", texts_of(screen.not_worth));
  const std::string headline = text_of(screen.headline);
  slice_event event{where, "verdict", headline, run.first_ns, run.last_ns - run.first_ns};
  for (const auto& [name, text] : texts) event.texts.push_back({name, text});
  sink.slice(event);
}

/// Diagnoses a run. Returns nothing if the run gets no verdict.
/// @param run  must have been read with diagnosis_parts.
std::optional<run_verdict> find_verdict(const run_data& run) {
  // The messages are discarded, because they were already printed when the run was read.
  diagnostic_log silent = diagnostic_log::silenced();
  judgement judged = diagnose_run(run, /*skip_batches=*/0, silent);
  if (!judged.found || !judged.found->is) return std::nullopt;
  return run_verdict{std::move(*judged.found), activities_in_order(run)};
}

/// Draws two tracks. The first has one slice over the whole run, with the headline of the diagnosis
/// as its name, and the reason, warnings and suggestions as arguments. The second shows the
/// activities on the critical path one after the other, with their threads.
void draw_verdict(const run_verdict& found, const run_data& run, const run_tracks& tracks,
                  drawing_state& picture) {
  const track verdict{tracks.pid, picture.tids.take(0)};
  picture.sink.process_track(verdict, "verdict", verdict_order(0));
  draw_headline(run, first_screen_of(found.diagnosed, 0), verdict, picture.sink);
  const track path{tracks.pid, picture.tids.take(0)};
  picture.sink.process_track(path, "critical path", verdict_order(1));
  for (const path_activity& a : found.path) {
    std::string name =
        path_title(a.kind, a.name ? shown_name(run.names.name(*a.name)) : std::string());
    // Viewers add up slices of the same name. With the suffix, this slice is not added to those of
    // the operation itself.
    if (a.kind == path_kind::operation) name += " (critical path)";
    slice_event event{path, "path", name, a.start_ns, a.end_ns - a.start_ns};
    if (a.file) event.texts.push_back({"thread", tracks.file_name[a.file->value()]});
    picture.sink.slice(event);
  }
}

/// The contents of one output file: some runs, and the profiler trace that they are merged into.
struct picture {
  std::vector<run_files> runs;
  std::optional<torch_trace> torch;
  std::string output;
};

bool is_chrome(const viz_options& options) {
  return options.format == 0;
}

/// Whether the trace shows the verdict and the critical path of a run. Both need the whole run with
/// its operations. For a large run they would take most of the time and a third of the output.
bool has_verdict(const viz_options& options, const run_data& run) {
  constexpr std::uint64_t max_operations = 200'000;
  return options.view.everything() && !options.coarse && run.operations <= max_operations;
}

torch_trace given_torch_trace(const std::string& path) {
  json_scan scan = scan_json(path);
  switch (scan.kind) {
    case json_kind::trace:
      break;
    case json_kind::ours:
      throw input_error(path + ": already holds a run's events");
    case json_kind::not_trace:
      throw input_error(path + ": holds no traceEvents");
    case json_kind::broken:
      throw input_error(scan.what);
  }
  return std::move(scan.trace);
}

/// Assigns the runs to output files: all loaders of a run are drawn into one file, because a
/// profiler trace in the run's folder covers all loaders.
std::vector<picture> with_traces(std::vector<run_files> runs, diagnostic_log& diagnostics) {
  std::vector<picture> found;
  for (run_files& run : runs) {
    auto same = std::find_if(found.begin(), found.end(), [&run](const picture& p) {
      return p.runs.front().info_dir == run.info_dir;
    });
    if (same == found.end()) {
      same = found.insert(same, {{}, find_torch_trace(run.info_dir, diagnostics), {}});
    }
    same->runs.push_back(std::move(run));
  }
  return found;
}

/// Decides which runs are drawn into which file. With -o, all runs are drawn into one file.
/// Otherwise each run that has a profiler trace gets a file next to this trace, as in the original
/// Lotus.
std::vector<picture> plan(const viz_options& options, std::vector<run_files> runs,
                          diagnostic_log& diagnostics) {
  std::vector<picture> pictures;
  if (!options.torch_trace.empty()) {
    pictures.push_back({std::move(runs), given_torch_trace(options.torch_trace), options.output});
  } else if (options.output.empty() && is_chrome(options)) {
    std::vector<std::string> without;
    for (picture& p : with_traces(std::move(runs), diagnostics)) {
      if (p.torch) {
        pictures.push_back(std::move(p));
      } else {
        for (const run_files& run : p.runs) without.push_back(run.dir);
      }
    }
    for (const std::string& dir : without) {
      if (pictures.empty()) break;
      diagnostics.warning(
          dir +
          ": skipped: no profiler trace in its folder, next to which the picture could be "
          "written; draw it with -o");
    }
  } else {
    picture one{{}, std::nullopt, options.output};
    for (picture& p : with_traces(std::move(runs), diagnostics)) {
      std::move(p.runs.begin(), p.runs.end(), std::back_inserter(one.runs));
      if (!p.torch) continue;
      if (!is_chrome(options)) {
        diagnostics.warning(p.torch->path +
                            ": not merged: only --format chrome can include a profiler trace");
        continue;
      }
      if (one.torch) {
        throw usage_error("several runs have a profiler trace (" + one.torch->path + ", " +
                          p.torch->path + "); leave out -o to get one output next to each");
      }
      one.torch = std::move(p.torch);
    }
    pictures.push_back(std::move(one));
  }
  for (picture& p : pictures) {
    if (p.output.empty() && p.torch) {
      p.output = merged_name(p.torch->path, options.coarse) + (options.gzip ? ".gz" : "");
    }
    if (!p.torch) continue;
    diagnostics.note("merged with " + p.torch->path + " into " + p.output);
    for (const std::string& note : fault_notes(p.torch->faults)) {
      diagnostics.note(p.torch->path + ": " + note);
    }
  }
  if (pictures.empty() || pictures.front().output.empty()) {
    throw usage_error("-o FILE is required, such as -o trace.json");
  }
  return pictures;
}

/// Throws input_error if one of the requested operations is not in `names`, which contains the
/// names of all operations that were read. The user has probably mistyped such a name.
void refuse_unknown_ops(const std::vector<std::string>& ops, const name_table& names) {
  std::vector<std::string> known;
  known.reserve(names.size());
  for (std::uint32_t n = 0; n < names.size(); ++n) known.push_back(shown_name(names.name(n)));
  for (const std::string& op : ops) {
    const std::string without_s = shown_name(op);
    const auto is_known = [&](const std::string& name) { return name == op || name == without_s; };
    if (std::any_of(known.begin(), known.end(), is_known)) continue;
    const std::string meant = did_you_mean(op, known);
    const std::string all = joined(known, ", ");
    throw input_error("--op: no operation '" + op + "' in this part of the run" +
                      (!meant.empty() ? "; " + meant
                       : all.empty()  ? ""
                                      : "; there are " + all));
  }
}

struct scanned_run {
  run_data data;
  std::optional<run_verdict> verdict;
  log_waits waits;
};

/// Draws all runs of a trace. Throws usage_error if the requested window of time contains nothing.
void draw_all(const viz_options& options, const picture& preprocessed,
              const std::vector<scanned_run>& scanned, std::int64_t base_ns, name_table& names,
              trace_sink& sink, diagnostic_log& diagnostics) {
  const std::vector<run_tracks> tracks =
      lay_tracks(preprocessed.runs, options.dir,
                 preprocessed.torch ? preprocessed.torch->numbers : std::set<std::uint64_t>());
  sink.begin(base_ns);
  std::uint32_t order = 0;
  for (const run_tracks& run : tracks) {
    for (const process_track& process : run.processes) {
      sink.process(process.pid, process.name, order++);
    }
    for (std::size_t f = 0; f < run.of_file.size(); ++f) {
      sink.thread(run.of_file[f], run.file_name[f], thread_order(f));
    }
  }
  drawing_state state{names, sink};
  if (preprocessed.torch) {
    for (const std::uint64_t number : preprocessed.torch->numbers) state.tids.reserve(number);
  }
  for (const run_tracks& run : tracks) {
    for (const track& used : run.of_file) state.tids.reserve(used.tid);
  }
  bool reached = false;
  bool found_names = false;
  std::int64_t longest_ns = 0;
  for (std::size_t r = 0; r < scanned.size(); ++r) {
    const run_data& run = scanned[r].data;
    if (run.first_ns > run.last_ns) continue;  // a run with only aggregated calls has no times
    if (scanned.size() > 1 && !has_window(options.view, run)) {
      diagnostics.warning(run.files->dir + ": skipped: it has no such batch or stage");
      continue;
    }
    view shown(options.view, run);
    draw_run(run, tracks[r], !options.coarse, scanned[r].waits, shown, state);
    if (scanned[r].verdict) draw_verdict(*scanned[r].verdict, run, tracks[r], state);
    reached = reached || shown.has_time(run.first_ns, run.last_ns);
    found_names = found_names || shown.found_names();
    longest_ns = std::max(longest_ns, run.last_ns - run.first_ns);
  }
  if (!reached) {
    throw usage_error("nothing was recorded in this part of the run; the run takes " +
                      human_time(longest_ns));
  }
  if (!options.coarse) refuse_unknown_ops(options.view.ops, names);
  if (!found_names) diagnostics.warning("no operation of that name in this part of the run");
  sink.finish();
}

int draw_default(const viz_options& options, const picture& preprocessed,
                 diagnostic_log& diagnostics, std::ostream& out) {
  std::vector<scanned_run> scanned;
  std::int64_t base_ns = INT64_MAX;
  bool empty = true;
  run_parts parts;
  parts.operations = !options.coarse;
  parts.beyond_part = true;
  for (const run_files& run : preprocessed.runs) {
    auto& [data, verdict, waits] =
        scanned.emplace_back(scanned_run{read_run_and_waits(run, parts, diagnostics), {}, {}});
    if (has_verdict(options, data)) {
      diagnostic_log silent = diagnostic_log::silenced();
      data = read_run_and_waits(run, diagnosis_parts, silent);
      verdict = find_verdict(data);
      data.ops.clear();  // only the verdict needs these
    }
    if (!options.coarse) waits = log_waits::read(data, diagnostics);
    empty = empty && data.empty();
    if (!data.aggregated.empty()) {
      diagnostics.note(run.dir + ": " + no_window_text(data.aggregated));
    }
    base_ns = std::min(base_ns, data.first_ns);
  }
  const int status = diagnostics.finish(options.strict);
  if (status != exit_fine) return status;
  if (empty) throw input_error(options.dir + ": the logs contain nothing usable");
  name_table names;
  output_file file(preprocessed.output, out, options.gzip);
  const auto sink = viz_formats[options.format].make(
      file, names, preprocessed.torch ? &*preprocessed.torch : nullptr);
  draw_all(options, preprocessed, scanned, base_ns, names, *sink, diagnostics);
  file.commit();
  return exit_fine;
}

}  // namespace

int run_viz(const viz_options& options, std::ostream& out, std::ostream& err) {
  if (options.compat && !is_chrome(options)) {
    throw usage_error("--compat is a form of --format chrome");
  }
  if (options.compat && !options.view.everything()) {
    throw usage_error(
        "--compat draws everything, as the original does: leave it out to select a part");
  }
  if (!options.torch_trace.empty() && !is_chrome(options)) {
    throw usage_error("only --format chrome can be merged with a profiler trace");
  }
  diagnostic_log diagnostics(err, options.quiet);
  int worst = exit_fine;
  for (picture& preprocessed : plan(options,
                                    find_runs(options.dir, options.prefix, diagnostics,
                                              options.compat || options.coarse ? 1 : 2),
                                    diagnostics)) {
    refuse_input_as_output(preprocessed.output, preprocessed.runs,
                           {preprocessed.torch ? preprocessed.torch->path : ""}, options.prefix);
    const compat_job job{preprocessed.runs, preprocessed.torch ? &*preprocessed.torch : nullptr,
                         preprocessed.output};
    const int status = options.compat ? draw_compat(options, job, diagnostics, out)
                                      : draw_default(options, preprocessed, diagnostics, out);
    worst = std::max(worst, status);
  }
  return worst;
}

}  // namespace lotus::tool
