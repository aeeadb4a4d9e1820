#include "viz.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "chrome_sink.hpp"
#include "compat_viz.hpp"
#include "diagnostics.hpp"
#include "draw.hpp"
#include "errors.hpp"
#include "log_files.hpp"
#include "names.hpp"
#include "output_file.hpp"
#include "perfetto_sink.hpp"
#include "run_model.hpp"
#include "speedscope_sink.hpp"
#include "table.hpp"
#include "torch_trace.hpp"
#include "trace_sink.hpp"
#include "tracks.hpp"
#include "view.hpp"

namespace lotus::tool {
namespace {

/// One output: the runs it shows, and the profiler trace they are merged into.
struct picture {
  std::vector<run_files> runs;
  std::optional<torch_trace> torch;
  std::string output;
};

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
      throw input_error(path + ": is no valid JSON: " + scan.what);
  }
  return std::move(scan.trace);
}

/// Decides what is merged and where it is written: with -o everything into one file; without it,
/// as the original does, every run that has a profiler trace beside that trace.
std::vector<picture> plan(const viz_options& options, std::vector<run_files> runs,
                          diagnostics& said) {
  std::vector<picture> pictures;
  if (!options.torch_trace.empty()) {
    pictures.push_back({std::move(runs), given_torch_trace(options.torch_trace), options.output});
  } else if (options.format != viz_format::chrome) {
    for (const run_files& run : runs) {
      if (const auto torch = find_torch_trace(run.dir, said)) {
        said.warning(torch->path +
                     ": left out, profiler traces are merged into --format chrome only");
      }
    }
    pictures.push_back({std::move(runs), std::nullopt, options.output});
  } else if (!options.output.empty()) {
    picture one{{}, std::nullopt, options.output};
    for (const run_files& run : runs) {
      std::optional<torch_trace> torch = find_torch_trace(run.dir, said);
      if (torch && one.torch) {
        throw usage_error("several runs have a profiler trace (" + one.torch->path + ", " +
                          torch->path + "); leave out -o to get one output beside each");
      }
      if (torch) one.torch = std::move(torch);
    }
    one.runs = std::move(runs);
    pictures.push_back(std::move(one));
  } else {
    std::vector<std::string> without;
    for (run_files& run : runs) {
      std::optional<torch_trace> torch = find_torch_trace(run.dir, said);
      if (!torch) {
        without.push_back(run.dir);
        continue;
      }
      pictures.push_back({{}, std::move(torch), {}});
      pictures.back().runs.push_back(std::move(run));
    }
    for (const std::string& dir : without) {
      if (pictures.empty()) break;
      said.warning(dir +
                   ": left out, it has no profiler trace beside which its picture could be "
                   "written; draw it with -o");
    }
  }
  for (picture& p : pictures) {
    if (p.output.empty() && p.torch) {
      p.output = merged_name(p.torch->path, options.coarse) + (options.gzip ? ".gz" : "");
    }
    if (p.torch) said.note("merged with " + p.torch->path + " into " + p.output);
  }
  if (pictures.empty() || pictures.front().output.empty()) {
    throw usage_error("say where to write: -o FILE");
  }
  return pictures;
}

std::unique_ptr<trace_sink> make_sink(const viz_options& options, output_file& file,
                                      const name_table& names, const torch_trace* torch) {
  switch (options.format) {
    case viz_format::perfetto:
      return std::make_unique<perfetto_sink>(file, names);
    case viz_format::speedscope:
      return std::make_unique<speedscope_sink>(file, names);
    case viz_format::chrome:
      break;
  }
  return std::make_unique<chrome_sink>(file, names, torch);
}

/// Throws usage_error when nothing lies in the window that the user wants to see.
void draw_all(const viz_options& options, const picture& made,
              const std::vector<scanned_run>& scanned, std::int64_t base_ns, name_table& names,
              trace_sink& sink, diagnostics& said) {
  const std::vector<run_tracks> tracks = lay_tracks(
      made.runs, options.dir, made.torch ? made.torch->numbers : std::set<std::uint64_t>());
  sink.begin(base_ns);
  std::uint32_t order = 0;
  for (const run_tracks& run : tracks) {
    for (const process_track& process : run.processes) {
      sink.process(process.pid, process.name, order++);
    }
    for (std::size_t f = 0; f < run.of_file.size(); ++f) {
      sink.thread(run.of_file[f], run.file_name[f], static_cast<std::uint32_t>(f));
    }
  }
  bool reached = false;
  bool found_names = false;
  std::int64_t longest_ns = 0;
  for (std::size_t r = 0; r < scanned.size(); ++r) {
    const scanned_run& run = scanned[r];
    if (scanned.size() > 1 && !has_window(options.view, run.batches)) {
      said.warning(run.files->dir + ": left out, it has no batch at which the window ends");
      continue;
    }
    view shown(options.view, run.batches, run.first_ns, run.last_ns);
    draw_run(run, tracks[r], !options.coarse, shown, names, sink);
    reached = reached || shown.has_time(run.first_ns, run.last_ns);
    found_names = found_names || shown.found_names();
    longest_ns = std::max(longest_ns, run.last_ns - run.first_ns);
  }
  if (!reached) {
    throw usage_error("nothing lies in this window; the run takes " +
                      human_time(static_cast<double>(longest_ns)));
  }
  if (!found_names) said.warning("no operation of that name lies there");
  sink.finish();
}

int draw_default(const viz_options& options, const picture& made, diagnostics& said,
                 std::ostream& out) {
  std::vector<scanned_run> scanned;
  std::int64_t base_ns = INT64_MAX;
  std::uint64_t flows = 1;
  bool empty = true;
  for (const run_files& run : made.runs) {
    run_scan scan = scan_batches(run, said);
    empty = empty && scan.empty();
    base_ns = std::min(base_ns, scan.first_ns);
    const std::int64_t first_ns = scan.first_ns;
    const std::int64_t last_ns = scan.last_ns;
    scanned.push_back({&run, run_batches(std::move(scan.records)), first_ns, last_ns, flows});
    flows += scanned.back().batches.all().size();
  }
  const int status = said.finish(options.strict);
  if (status != exit_fine) return status;
  if (empty) throw input_error(options.dir + ": nothing usable in the logs");
  name_table names;
  output_file file(made.output, out, options.gzip);
  const auto sink = make_sink(options, file, names, made.torch ? &*made.torch : nullptr);
  draw_all(options, made, scanned, base_ns, names, *sink, said);
  file.commit();
  return exit_fine;
}

}  // namespace

int run_viz(const viz_options& options, std::ostream& out, std::ostream& err) {
  if (options.compat && options.format != viz_format::chrome) {
    throw usage_error("--compat is a form of --format chrome");
  }
  if (options.compat && !options.view.everything()) {
    throw usage_error("--compat draws everything, as the original does; leave one of them out");
  }
  if (!options.torch_trace.empty() && options.format != viz_format::chrome) {
    throw usage_error("only --format chrome can be merged with a profiler trace");
  }
  diagnostics said(err, options.quiet);
  int worst = exit_fine;
  for (const picture& made :
       plan(options,
            find_runs(options.dir, options.prefix, said, options.compat || options.coarse ? 1 : 2),
            said)) {
    refuse_input_as_output(made.output, made.runs, {made.torch ? made.torch->path : ""},
                           options.prefix);
    const compat_job job{made.runs, made.torch ? &*made.torch : nullptr, made.output};
    const int status = options.compat ? draw_compat(options, job, said, out)
                                      : draw_default(options, made, said, out);
    worst = std::max(worst, status);
  }
  return worst;
}

}  // namespace lotus::tool
