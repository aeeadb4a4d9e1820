#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "cli/arguments.hpp"
#include "cli/commands/log_commands.hpp"
#include "cli/reading_options.hpp"
#include "commands/tune/knobs.hpp"
#include "commands/tune/tune.hpp"
#include "commands/whatif/whatif.hpp"
#include "log/window/wanted_part.hpp"

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

/// An option of `lotus-tool whatif` that changes the pipeline.
struct change_option {
  const char* name;
  const char* value;  ///< the value in the help; nullptr: the option has none
  const char* meaning;
  void (*take)(pipeline_change& change, const std::string& text);
  bool repeated = false;
};

/// All changes. The help, the completions, the documentation and the server of `lotus-tool mcp` are
/// made from this table.
constexpr change_option change_options[] = {
    {"--workers", "N|STAGE=N", "use N workers, or N threads in stage STAGE",
     [](pipeline_change& change, const std::string& text) {
       if (text.find('=') == std::string::npos) {
         change.workers = thread_count(positive_number(text, "", "--workers"), "--workers");
       } else {
         const auto [stage, threads] = named_number(text, "--workers");
         change.threads[stage] = thread_count(threads, "--workers");
       }
     },
     true},
    {"--prefetch", "N", "prefetch depth: batches in flight per worker",
     [](pipeline_change& change, const std::string& text) {
       change.prefetch = thread_count(positive_number(text, "", "--prefetch"), "--prefetch");
     }},
    {"--unordered", nullptr, "let the consumer receive batches in any order",
     [](pipeline_change& change, const std::string&) { change.unordered = true; }},
    {"--ready-samples", nullptr,
     "fill batches with samples in the order in which they\n"
     "are ready, so that a slow sample delays no batch",
     [](pipeline_change& change, const std::string&) { change.ready_samples = 1; }},
    {"--faster", "NAME=FACTOR",
     "make operation or stage NAME FACTOR times as fast;\n"
     "operations inside an operation stay as they are",
     [](pipeline_change& change, const std::string& text) {
       change.faster.insert(named_number(text, "--faster"));
     },
     true},
    {"--without", "NAME",
     "make operation or stage NAME take no time;\n"
     "operations inside an operation stay as they are",
     [](pipeline_change& change, const std::string& text) { change.faster[text] = HUGE_VAL; },
     true},
    {"--offload", "NAME",
     "execute operation or stage NAME on other machines or\n"
     "on an accelerator",
     [](pipeline_change& change, const std::string& text) { change.offload.insert(text); }, true},
    {"--cache", "OP",
     "keep the results of operation OP in memory: after the\n"
     "first epoch, it and what runs before it take no time",
     [](pipeline_change& change, const std::string& text) { change.cache = text; }},
    {"--cached-reads", nullptr, "read all files from the page cache, not from the disk",
     [](pipeline_change& change, const std::string&) { change.cached_reads = true; }},
    {"--order", "A,B",
     "run operation A, such as a filter, before B;\n"
     "A,B=0.25: a fourth of the work of B is then left",
     [](pipeline_change& change, const std::string& text) {
       moved_operation& order = change.order;
       const std::size_t comma = text.find(',');
       if (comma == 0 || comma == std::string::npos || comma + 1 == text.size()) {
         throw usage_error("--order: expected two operations, as in Filter,Decode");
       }
       order.earlier = text.substr(0, comma);
       order.later = text.substr(comma + 1);
       if (order.later.find('=') == std::string::npos) return;
       std::tie(order.later, order.share) = named_number(order.later, "--order");
     }},
    {"--step", "FACTOR",
     "multiply the time of the consumer's work on a batch\n(its step), such as by 0.5",
     [](pipeline_change& change, const std::string& text) {
       change.step = positive_number(text, "x", "--step");
     }},
    {"--cpus", "N", "simulate a machine with N CPUs",
     [](pipeline_change& change, const std::string& text) {
       change.cpus = positive_number(text, "", "--cpus");
     }},
    {"--loader-cpus", "N",
     "let the threads of the loader run on N of the CPUs\n"
     "only, and the consumer on another one",
     [](pipeline_change& change, const std::string& text) {
       change.loader_cpus =
           thread_count(positive_number(text, "", "--loader-cpus"), "--loader-cpus");
     }},
    {"--batch-size", "FACTOR", "multiply the batch size, such as by 2",
     [](pipeline_change& change, const std::string& text) {
       change.batch_size = positive_number(text, "x", "--batch-size");
     }},
    {"--own-thread", nullptr,
     "if the consumer builds its batches itself: let a\n"
     "worker thread build them",
     [](pipeline_change& change, const std::string&) { change.own_thread = true; }},
};

/// Values of options of `lotus-tool whatif`, as the user typed them. take_texts() converts them.
struct whatif_texts {
  struct given_change {
    bool flag = false;
    std::string text;
    std::vector<std::string> texts;
  };
  std::array<given_change, std::size(change_options)> changes;  // in the order of change_options
  std::string recorded_cpus, target;
};

void take_texts(const whatif_texts& given, whatif_options& options) {
  for (std::size_t i = 0; i < given.changes.size(); ++i) {
    const whatif_texts::given_change& of = given.changes[i];
    const auto take = [&](const std::string& text) {
      change_options[i].take(options.change, text);
    };
    if (of.flag) take({});
    if (!of.text.empty()) take(of.text);
    for (const std::string& text : of.texts) take(text);
  }
  if (!given.recorded_cpus.empty()) {
    options.recorded_cpus = positive_number(given.recorded_cpus, "", "--recorded-cpus");
  }
  if (!given.target.empty()) {
    options.target_per_s = positive_number(given.target, "/s", "--target");
  }
}

void add_changes(CLI::App& command, whatif_texts& given) {
  for (std::size_t i = 0; i < given.changes.size(); ++i) {
    const change_option& option = change_options[i];
    whatif_texts::given_change& to = given.changes[i];
    if (option.value == nullptr) {
      command.add_flag(option.name, to.flag, option.meaning);
    } else if (option.repeated) {
      add_repeated(command, option.name, to.texts, option.value, option.meaning);
    } else {
      add_text(command, option.name, to.text, option.value, option.meaning);
    }
  }
}

}  // namespace

std::vector<const char*> names_of_changes() {
  std::vector<const char*> names;
  for (const change_option& option : change_options) names.push_back(option.name);
  return names;
}

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
      "  lotus-tool whatif run/ --curve workers                # draws a curve\n"
      "Terms:\n"
      "An operation is a part of the program that is marked with LOTUS_SCOPE.\n"
      "A stage (LOTUS_STAGE) is a part of the pipeline with its own threads.\n"
      "A worker builds batches; the consumer, such as a training loop, receives them.\n"
      "A batch is in flight from its dispatch to a worker until the consumer gets it.\n"
      "Details:\n"
      "--workers, --faster, --without and --offload may be repeated.\n"
      "The run is simulated event by event, without and with the changes.\n"
      "The simulation of the unchanged run shows the simulation's error.\n"
      "This error is subtracted from each prediction (half of it if the change is large).\n"
      "A prediction's 90 % interval contains the true value in 9 of 10 cases.\n"
      "A target counts as reached if the prediction is at most 2 % below it.\n"
      "Exit status: 0 = success, 1 = bad input, 2 = usage error.\n"
      "Exit status 4: no settings reach the target, or the run cannot be simulated.");
  command->add_option("DIR", options->dir, logs_folder)->required();
  add_changes(*command, *given);
  add_text(*command, "--also", options->also, "DIR2",
           "folder of a second run of the same program, with\n"
           "another number of workers, for better predictions");
  add_text(*command, "--recorded-cpus", given->recorded_cpus, "N",
           "number of CPUs that the recorded program could use,\n"
           "if the logs do not contain it");
  CLI::Option* const target = add_text(*command, "--target", given->target, "RATE",
                                       "find the fewest workers that reach this throughput,\n"
                                       "such as 30/s (batches per second)");
  command
      ->add_flag("--feed-consumer", options->feed_consumer,
                 "find the fewest workers with which the consumer does\n"
                 "not wait")
      ->excludes(target);
  CLI::Option* const curve = add_text(*command, "--curve", options->curve, "WHAT",
                                      "draw the throughput over workers, prefetch, cpus,\n"
                                      "stage:NAME (threads of a stage), or the speed of the\n"
                                      "operation or stage WHAT; other runs of the program\n"
                                      "in folders next to DIR are dots")
                                 ->excludes(target);
  add_value(*command, "--format", options->format, "svg", "svg: the curve as a picture")
      ->check(CLI::IsMember({"svg"}))
      ->needs(curve);
  add_json(*command, options->json);
  add_table_options(*command);
  add_window(*command);
  add_reading(*command, *options);
  runs(*command, chosen, options,
       [given](whatif_options& of, std::ostream& out, std::ostream& err) {
         take_texts(*given, of);
         const bool asks = of.feed_consumer || of.target_per_s || !of.curve.empty();
         if (asks && !(of.change == pipeline_change{})) {
           throw usage_error(
               "--target, --feed-consumer and --curve cannot be combined with a change");
         }
         if (of.feed_consumer && !of.curve.empty()) {
           throw usage_error("--feed-consumer cannot be combined with --curve");
         }
         return run_whatif(of, out, err);
       });
}

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
      "Terms:\n"
      "A configuration is one value for each setting.\n"
      "A stage (LOTUS_STAGE) is a part of the pipeline with its own threads.\n"
      "Details:\n"
      "--set, --env and --start may be repeated.\n"
      "The first run uses the first value of every setting, or that of --start.\n"
      "Then the throughput of all other configurations is predicted, as 'lotus-tool whatif' "
      "does, and the one with the highest prediction is run.\n"
      "This is repeated until no better one is predicted or --runs runs are done.\n"
      "The effect of a setting can be predicted only if its name is workers (which build "
      "the batches), prefetch (batches built in advance), order (whether batches are "
      "received in order), batch_size, or stage:NAME (threads of the stage NAME).\n"
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
  add_repeated(*command, "--set", given->set, "NAME=VALUES",
               "values to try for a setting, such as workers=1..16;\n"
               "each run replaces {NAME} in the command by one value");
  add_repeated(*command, "--env", given->environment, "NAME=VALUES",
               "values to try for the environment variable NAME");
  add_repeated(*command, "--start", given->start, "NAME=VALUE",
               "value of setting NAME in the first run;\n"
               "default: the first of its values");
  add_text(*command, "--for", given->seconds, "TIME", "end each run after this time; default: 20s");
  add_count(*command, "--runs", options->runs, 1, "maximum number of runs; default: 6");
  add_text(*command, "--target", given->target, "RATE",
           "find the fewest workers and threads of stages that\n"
           "reach this throughput, such as 300/s, in batches per\n"
           "second or the unit of --metric");
  add_text(*command, "--metric", options->metric, "REGEX",
           "for programs that record nothing: regular expression\n"
           "whose first (group) matches the throughput in the\n"
           "program's output");
  add_text(*command, "--dir", options->dir, "DIR",
           "folder for the logs; default: tune,\n"
           "or tune-2, tune-3, ... if tune is not empty");
  add_json(*command, options->json);
  add_wide(*command);
  add_quiet(*command, options->quiet);
  command->add_option("PROGRAM", options->program, "the program and its arguments")->required();
  runs(*command, chosen, options, [given](tune_options& of, std::ostream& out, std::ostream& err) {
    take_tune_texts(*given, of);
    return run_tune(of, out, err);
  });
}

}  // namespace lotus::tool
