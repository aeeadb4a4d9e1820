#include <CLI/CLI.hpp>
#include <cmath>
#include <cstddef>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "cli/arguments.hpp"
#include "cli/commands/log_commands.hpp"
#include "cli/reading_options.hpp"
#include "commands/whatif/whatif.hpp"

namespace lotus::tool {
namespace {

/// Converts a text such as "NAME=2" or "NAME=2x" to the pair of "NAME" and 2. Throws usage_error if
/// the text does not have this form.
std::pair<std::string, double> named_number(const std::string& text, const std::string& option) {
  const std::size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) {
    throw usage_error(option + ": expected NAME=NUMBER, not " + text);
  }
  return {text.substr(0, at), positive_number(text.substr(at + 1), "x", option)};
}

std::size_t thread_count(double value, const std::string& option) {
  if (value != std::floor(value) || value > 100'000) {
    throw usage_error(option + ": expected a whole number of threads");
  }
  return static_cast<std::size_t>(value);
}

/// Values of options of `lotus-tool whatif`, as the user typed them. take_texts() converts them.
struct whatif_texts {
  std::vector<std::string> workers, faster, without;
  std::string prefetch, step, cpus, recorded_cpus, batch_size, target;
};

void take_texts(const whatif_texts& given, whatif_options& options) {
  pipeline_change& change = options.change;
  for (const std::string& text : given.workers) {
    if (text.find('=') == std::string::npos) {
      change.workers = thread_count(positive_number(text, "", "--workers"), "--workers");
    } else {
      const auto [stage, threads] = named_number(text, "--workers");
      change.threads[stage] = thread_count(threads, "--workers");
    }
  }
  for (const std::string& text : given.faster) change.faster.insert(named_number(text, "--faster"));
  for (const std::string& name : given.without) change.faster[name] = HUGE_VAL;
  const auto take = [](const std::string& text, std::string_view unit, const char* option,
                       auto& to) {
    if (!text.empty()) to = positive_number(text, unit, option);
  };
  if (!given.prefetch.empty()) {
    change.prefetch = thread_count(positive_number(given.prefetch, "", "--prefetch"), "--prefetch");
  }
  take(given.step, "x", "--step", change.step);
  take(given.cpus, "", "--cpus", change.cpus);
  take(given.recorded_cpus, "", "--recorded-cpus", options.recorded_cpus);
  take(given.batch_size, "x", "--batch-size", change.batch_size);
  take(given.target, "/s", "--target", options.target_per_s);
}

void add_changes(CLI::App& command, whatif_options& options, whatif_texts& given) {
  command.add_option("--workers", given.workers, "use N workers, or N threads in stage STAGE")
      ->option_text("N|STAGE=N")
      ->allow_extra_args(false);
  command.add_option("--prefetch", given.prefetch, "prefetch depth: batches in flight per worker")
      ->check(not_empty())
      ->option_text("N");
  command.add_flag("--unordered", options.change.unordered,
                   "let the consumer receive batches in any order");
  command
      .add_option("--faster", given.faster,
                  "make operation or stage NAME 2 times as fast;\n"
                  "operations inside an operation stay as they are")
      ->option_text("NAME=2")
      ->allow_extra_args(false);
  command
      .add_option("--without", given.without,
                  "make operation or stage NAME take no time;\n"
                  "operations inside an operation stay as they are")
      ->option_text("NAME")
      ->allow_extra_args(false);
  command
      .add_option("--step", given.step,
                  "multiply the time of the consumer's work on a batch\n(its step) by 0.5")
      ->check(not_empty())
      ->option_text("0.5");
  command.add_option("--cpus", given.cpus, "simulate a machine with N CPUs")
      ->check(not_empty())
      ->option_text("N");
  command.add_option("--batch-size", given.batch_size, "multiply the batch size by 2")
      ->check(not_empty())
      ->option_text("2x");
  command.add_flag("--own-thread", options.change.own_thread,
                   "if the consumer builds its batches itself: let a\n"
                   "worker thread build them");
}

}  // namespace

void add_whatif(CLI::App& app, action& chosen) {
  auto options = std::make_shared<whatif_options>();
  auto given = std::make_shared<whatif_texts>();
  CLI::App* command =
      app.add_subcommand("whatif", "Predict the effect of changes, such as more workers");
  command->footer(
      "Examples:\n"
      "  lotus-tool whatif run/                                # tries common changes\n"
      "  lotus-tool whatif run/ --workers 4 --faster Decode=2  # both changes together\n"
      "  lotus-tool whatif run/ --target 30/s                  # workers for 30/s\n"
      "--workers, --faster and --without may be repeated.\n"
      "An operation is a part of the program that is marked with LOTUS_SCOPE.\n"
      "A stage (LOTUS_STAGE) is a part of the pipeline with its own threads.\n"
      "A worker builds batches; the consumer, such as a training loop, receives them.\n"
      "A batch is in flight from its dispatch to a worker until the consumer gets it.\n"
      "The run is simulated event by event, without and with the changes.\n"
      "The simulation of the unchanged run shows the simulation's error.\n"
      "Predictions are corrected by this error, those of large changes by half of it.\n"
      "A prediction's 90 % interval contains the true value in 9 of 10 cases.\n"
      "A target counts as reached if the prediction is at most 2 % below it.\n"
      "Exit status: 0 = success, 1 = bad input, 2 = usage error.\n"
      "Exit status 4: no settings reach the target, or the run cannot be simulated.");
  command->add_option("DIR", options->dir, logs_folder)->required();
  add_changes(*command, *options, *given);
  command
      ->add_option("--also", options->also,
                   "folder of a second run of the same program, with\n"
                   "another number of workers, for better predictions")
      ->check(not_empty())
      ->option_text("DIR2");
  command
      ->add_option("--recorded-cpus", given->recorded_cpus,
                   "number of CPUs that the recorded program could use,\n"
                   "if the logs do not contain it")
      ->check(not_empty())
      ->option_text("N");
  CLI::Option* const target =
      command
          ->add_option("--target", given->target,
                       "find the fewest workers that reach this throughput\n"
                       "(batches per second)")
          ->check(not_empty())
          ->option_text("30/s");
  command
      ->add_flag("--feed-consumer", options->feed_consumer,
                 "find the fewest workers with which the consumer does\n"
                 "not wait")
      ->excludes(target);
  add_json(*command, options->json);
  add_table_options(*command);
  add_reading(*command, *options);
  command->callback([options, given, &chosen] {
    chosen = [options, given](std::ostream& out, std::ostream& err) {
      take_texts(*given, *options);
      const bool asks = options->feed_consumer || options->target_per_s;
      if (asks && !(options->change == pipeline_change{})) {
        throw usage_error("--target and --feed-consumer cannot be combined with a change");
      }
      return run_whatif(*options, out, err);
    };
  });
}

}  // namespace lotus::tool
