#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "cli/arguments.hpp"
#include "cli/commands/log_commands.hpp"
#include "cli/reading_options.hpp"
#include "commands/tune/knobs.hpp"
#include "commands/tune/tune.hpp"
#include "commands/viz/view.hpp"

namespace lotus::tool {
namespace {

/// Values of options of `lotus-tool tune`, as the user typed them. take_tune_texts() converts them.
struct tune_texts {
  std::vector<std::string> set, environment, start;
  std::string seconds{"20s"};
  std::string target;
};

void take_tune_texts(const tune_texts& given, tune_options& options) {
  for (const std::string& text : given.set) {
    options.knobs.push_back(parse_knob(text, false, "--set"));
  }
  for (const std::string& text : given.environment) {
    options.knobs.push_back(parse_knob(text, true, "--env"));
  }
  if (options.knobs.empty()) {
    throw usage_error("nothing to choose from: give --set workers=1..16, or --env NAME=1,2");
  }
  for (const std::string& text : given.start) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) throw usage_error("--start: expected NAME=VALUE, not " + text);
    options.start.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  options.seconds = 1e-9 * static_cast<double>(parse_duration_ns(given.seconds, "--for"));
  if (options.seconds <= 0) throw usage_error("--for: expected a time above 0, such as 20s");
  if (!given.target.empty()) {
    options.target_per_s = positive_number(given.target, "/s", "--target");
  }
}

}  // namespace

void add_tune(CLI::App& app, action& chosen) {
  auto options = std::make_shared<tune_options>();
  auto given = std::make_shared<tune_texts>();
  CLI::App* command =
      app.add_subcommand("tune", "Find the best number of workers and other settings");
  command->footer(
      "Examples:\n"
      "  lotus-tool tune --set workers=1..16 -- ./train --workers {workers}\n"
      "  lotus-tool tune --set workers=1..8 --set prefetch=1,2,4 --for 10s \\\n"
      "      -- ./train --workers {workers} --prefetch {prefetch}\n"
      "  lotus-tool tune --env OMP_NUM_THREADS=1,2 --metric '([0-9.]+) it/s' -- ./train\n"
      "--set, --env and --start may be repeated.\n"
      "A configuration is one value for each setting.\n"
      "The first run uses the first value of every setting, or that of --start.\n"
      "Then the throughput of all other configurations is predicted, as 'lotus-tool whatif' "
      "does, and the one with the highest prediction is run.\n"
      "This is repeated until no better one is predicted or --runs runs are done.\n"
      "The effect of a setting can be predicted only if its name is workers (which build "
      "the batches), prefetch (batches built in advance), order (whether batches are "
      "received in order), batch_size, or stage:NAME (threads of the stage NAME).\n"
      "A stage (LOTUS_STAGE) is a part of the pipeline with its own threads.\n"
      "Other settings are only tried, one at a time.\n"
      "The throughput is in batches per second, without the time until it is steady.\n"
      "With --metric, it is the mean of the numbers that REGEX finds in the program's "
      "output; the first half of them is ignored.\n"
      "When the time of --for is over, the program and its child processes get SIGTERM.\n"
      "Processes that still run 2 s later get SIGKILL; nothing recorded is lost.\n"
      "The best configuration has at least 98 % of the highest throughput; of several such "
      "configurations, it is the one with the fewest workers and threads of stages.\n"
      "Exit status: 0 = success, 1 = every run failed, 2 = usage error.\n"
      "Exit status 4: no run reaches --target.");
  command
      ->add_option("--set", given->set,
                   "values to try for a setting, such as workers=1..16;\n"
                   "each run replaces {NAME} in the command by one value")
      ->option_text("NAME=VALUES")
      ->allow_extra_args(false);
  command
      ->add_option("--env", given->environment, "values to try for the environment variable NAME")
      ->option_text("NAME=VALUES")
      ->allow_extra_args(false);
  command
      ->add_option("--start", given->start,
                   "value of setting NAME in the first run;\n"
                   "default: the first of its values")
      ->option_text("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--for", given->seconds, "end each run after this time; default: 20s")
      ->check(not_empty())
      ->option_text("20s");
  command->add_option("--runs", options->runs, "maximum number of runs; default: 6")
      ->check(whole_number(1))
      ->option_text("N");
  command
      ->add_option("--target", given->target,
                   "find the fewest workers and threads of stages that\n"
                   "reach this throughput, in batches per second or the\n"
                   "unit of --metric")
      ->check(not_empty())
      ->option_text("300/s");
  command
      ->add_option("--metric", options->metric,
                   "for programs that record nothing: regular expression\n"
                   "whose first (group) matches the throughput in the\n"
                   "program's output")
      ->check(not_empty())
      ->option_text("REGEX");
  command
      ->add_option("--dir", options->dir,
                   "folder for the logs; default: tune,\n"
                   "or tune-2, tune-3, ... if tune is not empty")
      ->check(not_empty())
      ->option_text("DIR");
  add_json(*command, options->json);
  add_wide(*command);
  add_quiet(*command, options->quiet);
  command->add_option("PROGRAM", options->program, "the program and its arguments")->required();
  command->callback([options, given, &chosen] {
    chosen = [options, given](std::ostream& out, std::ostream& err) {
      take_tune_texts(*given, *options);
      return run_tune(*options, out, err);
    };
  });
}

}  // namespace lotus::tool
