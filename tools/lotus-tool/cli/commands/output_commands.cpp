#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include "base/errors.hpp"
#include "cli/arguments.hpp"
#include "cli/commands/log_commands.hpp"
#include "cli/reading_options.hpp"
#include "commands/export/export.hpp"
#include "commands/run_snapshot.hpp"
#include "commands/top/top.hpp"
#include "commands/viz/formats/viz_formats.hpp"
#include "commands/viz/view.hpp"
#include "commands/viz/viz.hpp"
#ifdef LOTUS_TOOL_REPORT
  #include "commands/report/report.hpp"
#endif

namespace lotus::tool {
namespace {

struct format_words {
  word_choices choices;
  /// The names of the formats, separated by bars as in "chrome|perfetto".
  std::string with_bars;
};

format_words words_of_viz_formats() {
  format_words words;
  for (std::size_t i = 0; i < viz_formats.size(); ++i) {
    const std::string name = viz_formats[i].name;
    words.choices.emplace_back(name, static_cast<int>(i));
    words.with_bars += (i == 0 ? "" : "|") + name;
  }
  return words;
}

}  // namespace

void add_viz(CLI::App& app, action& chosen) {
  auto options = std::make_shared<viz_options>();
  auto only_slowest = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("viz", "Write a trace of runs for a trace viewer");
  command->footer(
      "Examples:\n"
      "  lotus-tool viz run/ -o trace.json      # for https://ui.perfetto.dev\n"
      "                                         # or https://www.speedscope.app\n"
      "  lotus-tool viz run/ -o slow.json --only-slowest 5\n"
      "  lotus-tool viz run/ -o part.json --from batch:10 --to batch:20 --op Decode\n"
      "Terms:\n"
      "A stage (LOTUS_STAGE) is a part of the pipeline with its own threads.\n"
      "An item is a numbered part of a batch, such as one image.\n"
      "The critical path is the chain of work that determined how long the run took.\n"
      "Details:\n"
      "DIR holds one run, or several in subfolders.\n"
      "Each run becomes a group of processes in the viewer.\n"
      "Two rows of the trace show the verdict (the bottleneck) and the critical path.\n"
      "These rows are missing if only a part of a run or over 200,000 operations are "
      "drawn.\n"
      "If the folder has a trace of PyTorch's profiler, the run is merged into a copy of "
      "that trace.\n"
      "Without -o, this copy is written next to the trace, and its name ends in _fine.json "
      "or, with --coarse, in _coarse.json.");
  command->add_option("DIR", options->dir, logs_folder)->required();
  add_value(*command, "-o,--output", options->output, "FILE",
            "file to write; - is standard output");
  const format_words formats = words_of_viz_formats();
  add_value(*command, "--format", options->format, formats.with_bars, "format of the output")
      ->transform(one_of_words(formats.choices))
      ->default_str(formats.choices.front().first);
  command->add_flag("--gzip", options->gzip, "compress the output; also if its name ends in .gz");
  command->add_flag("--coarse", options->coarse, "draw only batches, no operations");
  add_repeated(*command, "--op", options->view.ops, "NAME",
               "draw only this operation; may be repeated");
  add_text(*command, "--only-slowest", *only_slowest, "N",
           "draw only the N batches that took longest to build;\n"
           "STAGE:N: the batches or items slowest in stage STAGE");
  add_value(*command, "--torch-trace", options->torch_trace, "FILE",
            "merge the run into this PyTorch profiler trace");
  command->add_flag("--compat", options->compat,
                    "write events and names like the original Lotus, the\n"
                    "Python program for PyTorch");
  add_window(*command);
  add_reading(*command, *options);
  runs(*command, chosen, options,
       [only_slowest](viz_options& of, std::ostream& out, std::ostream& err) {
         if (!only_slowest->empty()) of.view.only_slowest = parse_slowest(*only_slowest);
         if (std::filesystem::path(of.output).extension() == ".gz") of.gzip = true;
         return run_viz(of, out, err);
       });
}

#ifdef LOTUS_TOOL_REPORT
namespace {

/// If the user types `--counters A B runs/`, the parser stores B in options.dirs, the list of
/// folders with runs, because it cannot know where the values of --counters end. Therefore this
/// function moves all regular files from options.dirs to the list of counter files.
void take_counters(report_options& options) {
  std::vector<std::string>& counters = options.hardware.counters;
  if (counters.empty()) return;
  const auto files =
      std::stable_partition(options.dirs.begin(), options.dirs.end(), [](const std::string& path) {
        std::error_code ignored;
        return !std::filesystem::is_regular_file(path, ignored);
      });
  counters.insert(counters.end(), files, options.dirs.end());
  options.dirs.erase(files, options.dirs.end());
  if (options.dirs.empty()) throw usage_error("DIR is required: the folder of the logs");
}

}  // namespace

void add_report(CLI::App& app, action& chosen) {
  auto options = std::make_shared<report_options>();
  CLI::App* command =
      app.add_subcommand("report", "Write one HTML page with everything about a run");
  command->footer(
      "Examples:\n"
      "  lotus-tool report runs/ -o report.html\n"
      "The page works without a network.\n"
      "If DIR holds several runs in subfolders, the page shows each of them.\n"
      "With --mapping, or if the program ran under 'lotus-tool map record', the page shows "
      "the functions in which each operation (LOTUS_SCOPE) spends its time.\n"
      "--counters adds hardware counters, as 'lotus-tool map attribute' shows them.");
  command->add_option("DIR", options->dirs, logs_folders)->required();
  const attribution_arguments arguments = add_attribution(*command, options->hardware);
  arguments.counters->needs(arguments.mapping)->allow_extra_args(false);
  arguments.elapsed->needs(arguments.counters);
  add_value(*command, "-o,--output", options->output, "FILE", "file to write; - is standard output")
      ->required();
  add_skipping(*command, options->skip_batches);
  add_window(*command);
  for (const char* const window : window_options) {
    // The counters are those of the whole run.
    arguments.counters->excludes(command->get_option(window));
  }
  add_reading(*command, *options);
  runs(*command, chosen, options, [](report_options& of, std::ostream& out, std::ostream& err) {
    take_counters(of);
    return run_report(of, out, err);
  });
}
#endif

void add_export(CLI::App& app, action& chosen) {
#ifdef LOTUS_TOOL_SQLITE
  constexpr auto formats = "csv|sqlite|parquet|pstats|collapsed";
#else
  constexpr auto formats = "csv|parquet|pstats|collapsed";
#endif
  auto options = std::make_shared<export_options>();
  CLI::App* command = app.add_subcommand("export", "Export a run as tables or as a profile");
  command->footer(
      "Examples:\n"
      "  lotus-tool export run/ --format csv -o tables/        # a file for each table\n"
      "  lotus-tool export run/ --format sqlite -o run.db      # read by sqlite3 run.db\n"
      "  lotus-tool export run/ --format parquet -o tables/    # for DuckDB, Spark\n"
      "  lotus-tool export run/ --format pstats -o run.prof    # for snakeviz, pstats\n"
      "  lotus-tool export run/ --format collapsed -o run.txt  # for flame graphs\n"
      "Terms:\n"
      "An operation is a part of the program that is marked with LOTUS_SCOPE.\n"
      "A stage (LOTUS_STAGE) is a part of the pipeline with its own threads.\n"
      "Details:\n"
      "The tables are runs, spans (calls of operations), batches, stages, counters, "
      "aggregated (operations whose calls are only counted and summed), and blocked_on "
      "(what operations waited for).\n"
      "Parquet needs the program duckdb.\n"
      "collapsed needs samples, which 'lotus-tool run' and 'attach' record.");
  command->add_option("DIR", options->dir, logs_folder)->required();
  add_value(*command, "--format", options->format, formats,
            "csv, sqlite, parquet: tables of everything recorded;\n"
            "pstats: calls and times in Python's cProfile format;\n"
            "collapsed: stacks of sampled threads")
      ->transform(one_of<export_format>({{"csv", export_format::csv},
#ifdef LOTUS_TOOL_SQLITE
                                         {"sqlite", export_format::sqlite},
#endif
                                         {"parquet", export_format::parquet},
                                         {"pstats", export_format::pstats},
                                         {"collapsed", export_format::collapsed}}))
      ->required();
  add_text(*command, "-o,--output", options->output, "PATH",
           "file to write; for csv and parquet a folder")
      ->required();
  add_window(*command);
  add_reading(*command, *options);
  runs(*command, chosen, options, run_export);
}

void add_unpack(CLI::App& app, action& chosen) {
  auto options = std::make_shared<unpack_options>();
  CLI::App* command = app.add_subcommand("unpack", "Convert binary (compact) logs to text logs");
  command->footer(
      "Examples:\n"
      "  lotus-tool unpack run/ -o text/\n"
      "  lotus-tool unpack run/ --all-runs -o text/\n"
      "Writes the logs that the program would have written with LOTUS_FORMAT=text.\n"
      "Use it for other programs that read logs: lotus-tool itself reads both formats.");
  command->add_option("DIR", options->dir, logs_folder)->required();
  add_value(*command, "-o,--output", options->output, "DIR",
            "folder to write to; must be new or empty")
      ->required();
  add_reading(*command, *options);
  runs(*command, chosen, options, run_unpack);
}

void add_top(CLI::App& app, action& chosen) {
  struct texts {
    std::string window{"10s"};
    std::string interval{"1s"};
  };
  auto options = std::make_shared<top_options>();
  auto given = std::make_shared<texts>();
  CLI::App* command =
      app.add_subcommand("top", "Show batches and operations of running programs, live");
  command->footer(
      "Examples:\n"
      "  lotus-tool top run/\n"
      "  lotus-tool top rank0/ rank1/ --last 30s\n"
      "  lotus-tool top run/ --once                           # prints plain text\n"
      "  lotus-tool top run/ --openmetrics metrics/lotus.prom # until Ctrl-C\n"
      "Terms:\n"
      "An operation is a part of the program that is marked with LOTUS_SCOPE.\n"
      "'self time' is the time of an operation minus that of the operations inside it.\n"
      "The window is the last 10 s of the run, or the time given to --last.\n"
      "A worker builds batches; the consumer, such as a training loop, receives them.\n"
      "A batch is ready from the end of its preprocessing until it is received.\n"
      "A stage (LOTUS_STAGE) is a part of the pipeline with its own threads.\n"
      "Details:\n"
      "Keys: s, c, t, m sort by self time, calls per second, total time, longest call.\n"
      "Keys: r and the arrow keys select a run; p or space freezes the screen; q quits.\n"
      "'% of 10.00 s' is self time in % of the window: two busy threads give 200 %.\n"
      "'busy', 'no input', 'queue full': shares of these threads' time in the window.\n"
      "Reads the logs as they grow, and the shared memory of the recording processes.\n"
      "This does not slow down the recording processes.\n"
      "Refreshes less often if it would otherwise use more than 2 % of a CPU.\n"
      "'aggregated' marks operations whose calls are only counted and summed "
      "(LOTUS_SCOPE_AGGREGATED).\n"
      "Their numbers cover the time since the last refresh, so --once first waits for one "
      "--interval.\n"
      "--openmetrics FILE is for the textfile collector of Prometheus' node exporter.");
  command->add_option("DIR", options->dirs, logs_folders)->required();
  add_text(*command, "--last,--window", given->window, "TIME",
           "show this much of the end; default: 10s");
  add_text(*command, "--interval", given->interval, "TIME",
           "time between two refreshes; default: 1s");
  add_value(*command, "--sort", options->order, "self|calls|total|max",
            "order of the operations; default: self")
      ->transform(one_of<live_order>({{"self", live_order::self},
                                      {"calls", live_order::calls},
                                      {"total", live_order::total},
                                      {"max", live_order::max}}));
  command->add_flag("--once", options->once, "print once and exit");
  add_text(*command, "--openmetrics", options->metrics, "FILE",
           "write metrics for Prometheus to FILE instead of\n"
           "showing a screen");
  add_prefix(*command, options->prefix);
  runs(*command, chosen, options, [given](top_options& of, std::ostream& out, std::ostream& err) {
    of.window_ns = parse_duration_ns(given->window, "--last");
    of.interval_ns = parse_duration_ns(given->interval, "--interval");
    if (of.window_ns < 100'000'000 || of.interval_ns < 10'000'000) {
      throw usage_error("--last must be at least 100ms, and --interval at least 10ms");
    }
    return run_top(of, out, err);
  });
}

}  // namespace lotus::tool
