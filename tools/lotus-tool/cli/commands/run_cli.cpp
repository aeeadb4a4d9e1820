#include "cli/commands/run_cli.hpp"

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <ostream>
#include <string>

#include "base/diagnostics.hpp"
#include "cli/arguments.hpp"
#include "cli/reading_options.hpp"
#include "commands/diagnose.hpp"
#include "commands/launch.hpp"
#include "commands/stats/stats.hpp"
#ifdef LOTUS_TOOL_REPORT
  #include "commands/report/report.hpp"
#endif

namespace lotus::tool {
namespace {

struct run_options {
  launch_options program;
  std::string report;
  bool quiet = false;
};

/// Reports an error and continues, because only the exit status of the program counts.
/// @return whether there was no error.
template <class Action>
bool attempt(diagnostic_log& diagnostics, const std::string& advice, Action&& action) {
  try {
    action();
    return true;
  } catch (const std::exception& error) {
    diagnostics.warning(error.what() + advice);
    return false;
  }
}

template <class Options>
Options reading(const launched& run) {
  Options options;
  options.prefix = run.prefix;
  options.quiet = true;  // the first reader has already printed the notes
  return options;
}

int run_and_tell(const run_options& options, std::ostream& err) {
  const launched run = launch(options.program);
  diagnostic_log diagnostics(err, options.quiet);
  const bool recorded =
      attempt(diagnostics, "; the program may have reached no marker such as LOTUS_SCOPE", [&] {
        auto stats = reading<stats_options>(run);
        stats.dirs = {run.dir};
        stats.quiet = options.quiet;
        stats.memory = options.program.memory;
        run_stats(stats, err, err);
      });
  if (!recorded) return run.status;
  err << '\n';
  attempt(diagnostics, "", [&] {
    auto diagnose = reading<diagnose_options>(run);
    diagnose.dir = run.dir;
    diagnose.next_commands = !options.quiet;
    run_diagnose(diagnose, err, err);
  });
#ifdef LOTUS_TOOL_REPORT
  if (!options.report.empty()) {
    attempt(diagnostics, "", [&] {
      auto report = reading<report_options>(run);
      report.dirs = {run.dir};
      report.output = options.report;
      run_report(report, err, err);
    });
  }
#endif
  diagnostics.note("logs: " + run.dir);
  return run.status;
}

}  // namespace

void add_run(CLI::App& app, action& chosen) {
  auto options = std::make_shared<run_options>();
  CLI::App* command =
      app.add_subcommand("run", "Run a program that records, then show its bottleneck");
  command->footer(
      "Examples:\n"
      "  lotus-tool run -- ./train args\n"
      "  lotus-tool run --report report.html -- ./train args\n"
      "Sets LOTUS_LOG_FILE for the program, passes terminal, signals and exit status through, and "
      "prints the output of 'stats' and 'diagnose' to standard error.\n"
      "Exit status: that of the program.");
  command
      ->add_option("--dir", options->program.dir,
                   "folder for the logs; default: run, or run-2, ... if run is not empty")
      ->check(not_empty());
  command->add_flag(
      "--memory", options->program.memory,
      "count what operations allocate and free; costs about 10 ns for a malloc and free");
#ifdef LOTUS_TOOL_REPORT
  command->add_option("--report", options->report, "also write the page of 'report'")
      ->check(not_empty())
      ->option_text("FILE");
#endif
  add_wide(*command);
  command->add_flag("-q,--quiet", options->quiet, "print no notes, only errors and warnings");
  command->add_option("PROGRAM", options->program.program, "the program and its arguments")
      ->required();
  command->callback([options, &chosen] {
    chosen = [options](std::ostream&, std::ostream& err) { return run_and_tell(*options, err); };
  });
}

}  // namespace lotus::tool
