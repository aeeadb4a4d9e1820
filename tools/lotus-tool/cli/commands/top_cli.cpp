#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include "base/errors.hpp"
#include "cli/arguments.hpp"
#include "cli/commands/log_commands.hpp"
#include "cli/reading_options.hpp"
#include "commands/top/top.hpp"
#include "commands/viz/view.hpp"

namespace lotus::tool {

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
      "  lotus-tool top rank0/ rank1/ --window 30s\n"
      "  lotus-tool top run/ --once                           # prints plain text\n"
      "  lotus-tool top run/ --openmetrics metrics/lotus.prom # until Ctrl-C\n"
      "Keys: s, c, t, m sort by self time, calls per second, total time, longest call.\n"
      "Keys: r and the arrow keys select a run; p or space freezes the screen; q quits.\n"
      "An operation is a part of the program that is marked with LOTUS_SCOPE.\n"
      "'self time' is the time of an operation minus that of the operations inside it.\n"
      "The window is the last 10 s of the run, or the time given to --window.\n"
      "'% of 10.00 s' is self time in % of the window: two busy threads give 200 %.\n"
      "A worker builds batches; the consumer, such as a training loop, receives them.\n"
      "A batch is ready from the end of its preprocessing until it is received.\n"
      "A stage (LOTUS_STAGE) is a part of the pipeline with its own threads.\n"
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
  command->add_option("--window", given->window, "show the last 30 seconds; default: 10s")
      ->check(not_empty())
      ->option_text("30s");
  command->add_option("--interval", given->interval, "time between two refreshes; default: 1s")
      ->check(not_empty())
      ->option_text("500ms");
  command->add_option("--sort", options->order, "order of the operations; default: self")
      ->transform(one_of<live_order>({{"self", live_order::self},
                                      {"calls", live_order::calls},
                                      {"total", live_order::total},
                                      {"max", live_order::max}}))
      ->option_text("self|calls|total|max");
  command->add_flag("--once", options->once, "print once and exit");
  command
      ->add_option("--openmetrics", options->metrics,
                   "write metrics for Prometheus to FILE instead of\n"
                   "showing a screen")
      ->check(not_empty())
      ->option_text("FILE");
  add_prefix(*command, options->prefix);
  command->callback([options, given, &chosen] {
    chosen = [options, given](std::ostream& out, std::ostream& err) {
      options->window_ns = parse_duration_ns(given->window, "--window");
      options->interval_ns = parse_duration_ns(given->interval, "--interval");
      if (options->window_ns < 100'000'000 || options->interval_ns < 10'000'000) {
        throw usage_error("--window must be at least 100ms, and --interval at least 10ms");
      }
      return run_top(*options, out, err);
    };
  });
}

}  // namespace lotus::tool
