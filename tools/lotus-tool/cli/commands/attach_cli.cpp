#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "cli/arguments.hpp"
#include "cli/commands/log_commands.hpp"
#include "cli/reading_options.hpp"
#include "launch/attach.hpp"
#include "threads/commands/threads.hpp"

namespace lotus::tool {
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
  command
      ->add_option("--for", options->seconds, "how long to sample; default: until the process ends")
      ->option_text("SECONDS");
  command
      ->add_option("--dir", options->process.dir,
                   "folder for the samples; default: run,\n"
                   "or run-2, run-3, ... if run is not empty")
      ->option_text("DIR")
      ->check(not_empty());
  add_json(*command, options->json);
  add_wide(*command);
  add_quiet(*command, options->quiet);
  command->callback([options, &chosen] {
    chosen = [options](std::ostream& out, std::ostream& err) {
      return attach_and_report(*options, out, err);
    };
  });
}

}  // namespace lotus::tool
