#include "cli/commands/top_cli.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include "base/errors.hpp"
#include "cli/arguments.hpp"
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
  CLI::App* command = app.add_subcommand("top", "Show what running programs do just now");
  command->footer(
      "Examples:\n"
      "  lotus-tool top run/\n"
      "  lotus-tool top rank0/ rank1/ --window 30s\n"
      "  lotus-tool top run/ --once                       as plain text, as into a pipe\n"
      "Reads what is appended to the logs, and the rings of the processes; they do nothing for\n"
      "it and do not notice. Keys: s, c, t, m sort by self time, calls, total or longest; r and\n"
      "the arrows choose a run; p or space pauses; q quits. Where looking takes long there is\n"
      "more time between two looks, so that it takes a CPU 2 % of its time at most.\n"
      "Of operations that are counted only (aggregated), what came between two looks is told;\n"
      "--once waits an interval for the second one.");
  command->add_option("DIR", options->dirs, "folders of the logs")->required();
  command->add_option("--window", given->window, "how much of the past counts (10s)")
      ->check(not_empty())
      ->option_text("30s");
  command->add_option("--interval", given->interval, "time between two looks (1s)")
      ->check(not_empty())
      ->option_text("500ms");
  command->add_option("--sort", options->order, "order of the operations")
      ->transform(one_of<live_order>({{"self", live_order::self},
                                      {"calls", live_order::calls},
                                      {"total", live_order::total},
                                      {"max", live_order::max}}))
      ->option_text("self|calls|total|max");
  command->add_flag("--once", options->once, "print it once and end");
  command->add_option("--prefix", options->prefix, "what the names of the logs begin with")
      ->capture_default_str();
  command->callback([options, given, &chosen] {
    chosen = [options, given](std::ostream& out, std::ostream& err) {
      options->window_ns = parse_duration_ns(given->window, "--window");
      options->interval_ns = parse_duration_ns(given->interval, "--interval");
      if (options->window_ns < 100'000'000 || options->interval_ns < 10'000'000) {
        throw usage_error("--window: at least 100ms; --interval: at least 10ms");
      }
      return run_top(*options, out, err);
    };
  });
}

}  // namespace lotus::tool
