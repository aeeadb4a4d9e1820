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
  add_text(*command, "--dir", options->program.dir, "DIR",
           "folder for the logs; default: run,\n"
           "or run-2, run-3, ... if run is not empty");
  command->add_flag_callback(
      "--no-threads", [options] { options->program.threads = false; },
      "do not sample what the program's threads do");
  command->add_flag("--memory", options->program.memory,
                    "record memory use; slows malloc and free by 10 ns");
#ifdef LOTUS_TOOL_REPORT
  add_text(*command, "--report", options->report, "FILE",
           "also write the HTML page of 'report' to this file");
#endif
  add_wide(*command);
  add_quiet(*command, options->quiet);
  // Options after the program are its own.
  command->positionals_at_end();
  command->add_option("PROGRAM", options->program.program, "the program and its arguments")
      ->required();
  runs(*command, chosen, options,
       [](const run_options& of, std::ostream& /*out*/, std::ostream& err) {
         return run_and_report(of, err);
       });
}

namespace {

struct command_options {
  attach_options process;
  std::string seconds;
  bool json = false;
  bool quiet = false;
};

int attach_and_report(command_options& options, std::ostream& out, std::ostream& err) {
  if (!options.seconds.empty()) {
    options.process.seconds = positive_number(options.seconds, "s", "--for");
  }
  diagnostic_log diagnostics(err, options.quiet);
  diagnostics.note("sampling process " + std::to_string(options.process.pid) + " (" +
                   sampled_name(options.process.pid) + "); Ctrl-C ends the sampling");
  const attached done = attach(options.process);
  threads_options threads;
  threads.dir = done.dir;
  threads.json = options.json;
  threads.quiet = options.quiet;
  run_threads(threads, out, err);
  if (!done.not_sampled.empty()) diagnostics.warning(done.not_sampled);
  diagnostics.note(
      (done.ended ? "the process has ended; the samples are in " : "the samples are in ") +
      done.dir);
  return exit_fine;
}

}  // namespace

void add_attach(CLI::App& app, action& chosen) {
  auto options = std::make_shared<command_options>();
  CLI::App* command =
      app.add_subcommand("attach", "Sample the threads of a process that already runs");
  command->footer(
      "Examples:\n"
      "  lotus-tool attach $(pidof train) --for 10\n"
      "  lotus-tool attach 4711 --for 10 --json | jq -r .headline   # only the summary\n"
      "Samples the process and its child processes from outside.\n"
      "Nothing is loaded into the process, and it is never paused.\n"
      "Sampling ends after --for seconds, at Ctrl-C, or when the process ends.\n"
      "Then the output of 'lotus-tool threads' is printed.");
  command->add_option("PID", options->process.pid, "id of the process")
      ->check(whole_number(1))
      ->required();
  add_value(*command, "--for", options->seconds, "SECONDS",
            "how long to sample; default: until the process ends");
  add_text(*command, "--dir", options->process.dir, "DIR",
           "folder for the samples; default: run,\n"
           "or run-2, run-3, ... if run is not empty");
  add_json(*command, options->json);
  add_wide(*command);
  add_quiet(*command, options->quiet);
  runs(*command, chosen, options, attach_and_report);
}

void add_threads(CLI::App& app, action& chosen) {
  auto options = std::make_shared<threads_options>();
  CLI::App* command = app.add_subcommand("threads", "Show what the threads of a recorded run did");
  command->footer(
      "Examples:\n"
      "  lotus-tool run -- ./train args\n"
      "  lotus-tool threads run/\n"
      "  lotus-tool threads run/ --json | jq -r .headline   # only the summary\n"
      "'lotus-tool run' and 'lotus-tool attach' record samples of what threads do.\n"
      "This command shows how much time the threads ran, and what they waited for.\n"
      "The program needs no macros of Lotus.\n"
      "Threads of one program that began in the same function share a row.");
  command->add_option("DIR", options->dir, "folder that 'lotus-tool run' or 'attach' wrote")
      ->required();
  add_json(*command, options->json);
  add_wide(*command);
  add_quiet(*command, options->quiet);
  runs(*command, chosen, options, run_threads);
}

}  // namespace lotus::tool
