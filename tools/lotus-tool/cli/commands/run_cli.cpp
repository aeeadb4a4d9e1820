#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "cli/arguments.hpp"
#include "cli/commands/log_commands.hpp"
#include "cli/reading_options.hpp"
#include "commands/diagnose.hpp"
#include "commands/stats/stats.hpp"
#include "launch/launch.hpp"
#include "log/folder/loaders.hpp"
#include "threads/commands/threads.hpp"
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

/// Calls `action`. If `action` throws, prints the error message as a warning and returns false.
/// Such an error does not change the exit status of `lotus-tool run`, which is that of the user's
/// program.
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
  options.quiet = true;  // the first command that read the run has already printed its notes
  return options;
}

/// Returns whether the program has written logs.
bool has_logs(const launched& run) {
  try {
    diagnostic_log silent = diagnostic_log::silenced();
    return !find_runs(run.dir, run.prefix, silent).empty();
  } catch (const std::exception&) {
    return false;
  }
}

/// Prints what the threads of the program did. It is used for a program without markers such as
/// LOTUS_SCOPE, for which `lotus-tool run` can only observe the threads.
int report_threads(const run_options& options, const launched& run, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  attempt(diagnostics, "", [&] {
    threads_options threads;
    threads.dir = run.dir;
    threads.quiet = options.quiet;
    run_threads(threads, err, err);
  });
  if (!run.not_sampled.empty()) diagnostics.warning(run.not_sampled);
  diagnostics.note(
      "the program executed no markers such as LOTUS_SCOPE (with LOTUS_DISABLE they do nothing), "
      "so only its threads were sampled; "
      "'lotus-tool threads " +
      run.dir + "' shows this again");
  return run.status;
}

int run_and_report(const run_options& options, std::ostream& err) {
  std::error_code unknown;
  if (std::filesystem::exists(options.program.dir, unknown) &&
      !std::filesystem::is_directory(options.program.dir, unknown)) {
    throw input_error(options.program.dir + ": not a directory; give a folder for the logs");
  }
  const launched run = launch(options.program);
  diagnostic_log diagnostics(err, options.quiet);
  if (run.threads && !has_logs(run)) return report_threads(options, run, err);
  const bool recorded = has_logs(run);
  if (!recorded) {
    diagnostics.warning("nothing was recorded in " + run.dir +
                        "/: perhaps the program executed no marker such as LOTUS_SCOPE");
  }
  const bool shown = recorded && attempt(diagnostics, "", [&] {
                       auto stats = reading<stats_options>(run);
                       stats.dirs = {run.dir};
                       stats.quiet = options.quiet;
                       stats.memory = options.program.memory;
                       run_stats(stats, err, err);
                     });
  if (!shown) {
    if (!run.not_sampled.empty()) diagnostics.warning(run.not_sampled);
    return run.status;
  }
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
  diagnostics.note("the logs are in " + run.dir + '/');
  if (options.program.threads && run.not_sampled.empty()) {
    diagnostics.note("'lotus-tool threads " + run.dir + "' shows the time of each thread");
  }
  return run.status;
}

}  // namespace

void add_run(CLI::App& app, action& chosen) {
  auto options = std::make_shared<run_options>();
  options->program.threads = true;
  CLI::App* command = app.add_subcommand("run", "Run a program, record it and show its bottleneck");
  command->footer(
      "Examples:\n"
      "  lotus-tool run -- ./train args\n"
      "  lotus-tool run --report report.html -- ./train args\n"
      "LOTUS_SCOPE and other macros of Lotus in the program mark what is recorded.\n"
      "Sets LOTUS_LOG_FILE, so that the program need not call lotus::start().\n"
      "The program uses the same terminal and gets the signals sent to lotus-tool.\n"
      "Afterwards prints the output of 'stats' and 'diagnose' to standard error.\n"
      "Also samples what all threads do and wait for; 'lotus-tool threads' shows it.\n"
      "If the program has no macros of Lotus, prints the output of 'threads' instead.\n"
      "Exit status: that of the program.");
  command
      ->add_option("--dir", options->program.dir,
                   "folder for the logs; default: run,\n"
                   "or run-2, run-3, ... if run is not empty")
      ->check(not_empty())
      ->option_text("DIR");
  command->add_flag_callback(
      "--no-threads", [options] { options->program.threads = false; },
      "do not sample what the program's threads do");
  command->add_flag("--memory", options->program.memory,
                    "record memory use; slows malloc and free by 10 ns");
#ifdef LOTUS_TOOL_REPORT
  command
      ->add_option("--report", options->report, "also write the HTML page of 'report' to this file")
      ->check(not_empty())
      ->option_text("FILE");
#endif
  add_wide(*command);
  add_quiet(*command, options->quiet);
  // Options after the program are its own.
  command->positionals_at_end();
  command->add_option("PROGRAM", options->program.program, "the program and its arguments")
      ->required();
  command->callback([options, &chosen] {
    chosen = [options](std::ostream&, std::ostream& err) { return run_and_report(*options, err); };
  });
}

}  // namespace lotus::tool
