#include "commands/tune/tune.hpp"

#include <csignal>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/child_process.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "commands/tune/forecast.hpp"
#include "commands/tune/throughput.hpp"
#include "commands/tune/trial.hpp"
#include "curve/measured_runs.hpp"
#include "describe/description.hpp"
#include "findings/checks/check.hpp"
#include "findings/claims.hpp"
#include "findings/diagnosis.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "log/folder/log_files.hpp"
#include "log/folder/starts.hpp"
#include "log/process_info.hpp"
#include "model/run_data.hpp"
#include "replay/prediction.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "waits/join/limiting_lock.hpp"

namespace lotus::tool {
namespace {

std::string signal_text(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGKILL:
      return "SIGKILL";
    case SIGSEGV:
      return "SIGSEGV";
    case SIGABRT:
      return "SIGABRT";
    default:
      return "signal " + std::to_string(signal);
  }
}

std::string seconds_text(double seconds) {
  return human_time(1e9 * seconds);
}

/// Whether a throughput is so exact that the run can end: at least `many` values were measured, and
/// the confidence interval is at most 6 % wide.
bool is_exact(const std::optional<throughput>& rate, std::size_t many) {
  constexpr double near = 0.03;
  return rate && rate->values >= many && rate->high - rate->low <= 2 * near * rate->per_s;
}

/// Whether the rates that a program has printed so far are enough to compute its throughput.
bool is_printed(const std::vector<printed_rate>& rates) {
  constexpr std::size_t many = 20;
  return is_exact(printed_throughput(rates), many);
}

/// Reads the records of a running program. Returns whether its throughput is exact enough.
bool is_measured(const std::string& dir, const std::string& prefix) {
  diagnostic_log silent = diagnostic_log::silenced();
  try {
    const std::vector<run_files> runs = find_runs(dir, prefix, silent);
    const run_data run = read_run(runs.front(), {}, silent);
    constexpr std::size_t many = 100;
    return is_exact(steady_throughput(receptions_of(run.batches), 0), many);
  } catch (const input_error&) {
    return false;  // nothing is recorded yet
  }
}

/// Searches for the best settings: runs the program with different settings and measures it.
class tuner {
 public:
  tuner(const tune_options& options, const search_space& space, diagnostic_log& diagnostics)
      : options_(options),
        space_(space),
        diagnostics_(diagnostics),
        dir_(options.dir.empty() ? unused_folder("tune") : options.dir),
        predictions_(space),
        search_(space, predictions_, {options.runs, options.target_per_s}) {}

  tune_result tune() {
    const until_interrupted signals;
    std::string ended;
    while (ended.empty()) {
      const std::optional<next_run> next = search_.next();
      if (!next) {
        ended = search_.ended_because();
        break;
      }
      // Choosing the next run may take long, so a signal such as that of Ctrl-C may have arrived.
      if (interrupted_by() == 0) search_.add(run(*next));
      if (interrupted_by() != 0) {
        ended = "interrupted by " + signal_text(interrupted_by());
        break;
      }
      const tune_run& last = search_.runs().back();
      diagnostics_.note(
          printable_line(run_line(last, space_, search_.runs().size(), options_.runs)));
      if (search_.runs().size() == 1 && !last.measured) {
        ended = "the first run failed; --start chooses other values for it";
      }
    }
    return {&space_, &search_, options_.target_per_s, ended, dir_, curve()};
  }

 private:
  /// Returns the curve of the first run over the first setting that can be predicted; nullopt if
  /// there is none, or only one run.
  std::optional<speed_curve> curve() const {
    const tune_run& first = search_.runs().front();
    if (first.dir.empty() || search_.runs().size() < 2) return std::nullopt;
    diagnostic_log silent = diagnostic_log::silenced();
    for (const knob& k : space_.knobs()) {
      const std::string name = k.meaning == knob_meaning::stage ? "stage:" + k.stage : k.name;
      if (k.meaning != knob_meaning::workers && k.meaning != knob_meaning::prefetch &&
          k.meaning != knob_meaning::stage) {
        continue;
      }
      try {
        const std::vector<run_files> files = find_runs(first.dir, default_prefix, silent);
        const run_data run = read_run(files.front(), checked_parts, silent);
        const judgement judged = diagnose_run(run, 0, silent, predictions::none);
        if (!why_not_predicted(run, judged).empty()) return std::nullopt;
        measured_runs others{std::string(default_prefix)};
        return draw_curve(*judged.simulated, run, *judged.found,
                          axis_named(name, judged.simulated->recorded(), run.names),
                          others.others_than(files.front()));
      } catch (const input_error&) {
        // The run has no such setting.
      }
    }
    return std::nullopt;
  }

  tune_run run(const next_run& next) {
    tune_run made;
    made.at = next.at;
    made.predicted = next.predicted;
    trial_request request;
    request.command = space_.command(next.at);
    request.environment = space_.environment(next.at);
    request.dir = new_folder();
    request.seconds = options_.seconds;
    request.metric = options_.metric;
    const bool printed = !options_.metric.empty();
    request.is_enough = [printed](const std::string& dir, const std::string& prefix,
                                  const std::vector<printed_rate>& rates) {
      return printed ? is_printed(rates) : is_measured(dir, prefix);
    };
    trial_result trial;
    try {
      trial = run_trial(request);
    } catch (const input_error& error) {
      made.fault = error.what();
      return made;
    }
    made.bytes = trial.bytes;
    made.cpus = trial.cpus;
    made.other_cpus = trial.other_cpus;
    made.waited = trial.waited;
    made.seconds = trial.seconds;
    note_end(trial, made);
    if (made.fault.empty()) measure(trial, made);
    return made;
  }

  /// Returns an unused folder for the next run, so that logs of earlier searches with the same
  /// --dir are kept.
  std::string new_folder() {
    std::error_code ignored;
    do {
      ++folder_;
    } while (std::filesystem::exists(dir_ + '/' + std::to_string(folder_), ignored));
    return dir_ + '/' + std::to_string(folder_);
  }

  /// Stores a fault or a note if the program ended in an unusual way.
  static void note_end(const trial_result& trial, tune_run& made) {
    const std::string said =
        trial.last_line.empty() ? "" : "; it printed last: " + printable_line(trial.last_line);
    if (trial.killed) made.notes.emplace_back("ignored SIGTERM and was killed");
    if (trial.outlived > 0) {
      made.notes.push_back(std::to_string(trial.outlived) +
                           (trial.outlived == 1 ? " process" : " processes") +
                           " outlived the program, and were ended");
    }
    if (trial.unkillable > 0) {
      made.notes.push_back(std::to_string(trial.unkillable) + " processes could not be ended");
    }
    if (trial.stopped) {
      made.fault = "stopped, because it reads from a terminal, and runs have none";
    } else if (!trial.cut_off && !trial.interrupted && trial.status != 0) {
      made.fault = "ended after " + seconds_text(trial.seconds) + " with " +
                   (trial.by_signal ? signal_text(trial.status - 128)
                                    : "exit status " + std::to_string(trial.status)) +
                   (trial.status == 128 + SIGKILL ? ", perhaps because memory ran out" : "") + said;
    }
  }

  void measure(const trial_result& trial, tune_run& made) {
    auto recorded = std::make_unique<recorded_trial>();
    std::string why_not = read(trial, made, *recorded);
    if (!options_.metric.empty()) {
      made.measured = printed_throughput(trial.rates);
      if (!made.measured) {
        made.fault = "none of the " + std::to_string(trial.lines_read) +
                     " lines that it printed matches --metric; a program that prints to a pipe may "
                     "hold its lines back until it ends (stdbuf -oL or python -u prevents that)";
      }
    } else if (why_not.empty()) {
      made.measured = steady_throughput(receptions_of(recorded->run.batches), trial.begin_ns);
      if (!made.measured) {
        made.fault = "fewer than " + std::to_string(min_counted) + " batches in " +
                     seconds_text(trial.seconds) + "; --for gives it more time";
      }
    } else {
      made.fault = why_not;
    }
    if (made.measured && why_not.empty()) {
      predictions_.learn(made.at, std::move(recorded), made.measured->per_s);
    }
  }

  /// Reads the program's records. Returns why they cannot be used; "" if they can.
  static std::string read(const trial_result& trial, tune_run& made, recorded_trial& to) {
    diagnostic_log silent = diagnostic_log::silenced();
    try {
      std::vector<run_files> runs = find_runs(trial.dir, trial.prefix, silent);
      // The first run is that of the default loader, which is most likely the training's.
      to.files = std::move(runs.front());
      to.run = read_run(to.files, checked_parts, silent);
    } catch (const input_error&) {
      return "recorded nothing in " + seconds_text(trial.seconds) +
             "; perhaps the program executed no marker such as LOTUS_SCOPE; --metric reads the "
             "throughput from its output instead";
    }
    made.dir = trial.dir;
    const record_counts& records = to.run.records;
    if (records.dropped > 0) made.notes.push_back(dropped_text(records));
    if (records.lost > 0) made.notes.push_back(lost_text(records.lost));
    if (to.run.batches.all().empty()) {
      return "recorded no batch in " + seconds_text(trial.seconds) + ": " +
             text_of(why_no_pipeline(to.run));
    }
    const judgement judged = diagnose_run(to.run, 0, silent, predictions::none);
    to.why_not = judged.found ? why_silent(to.run, judged.found->checks) : judged.why_not;
    if (to.why_not.empty()) {
      recording recorded = record_pipeline(to.run);
      if (!recorded.pipeline) to.why_not = {"%", {name_word{recorded.why_not}}};
      to.pipeline = std::move(recorded.pipeline);
      if (to.pipeline) {
        to.pipeline->lock = find_sampled_lock(judged.found->blocked_on);
        if (!claims(*judged.found).why_not_simulated().empty()) {
          to.why_not = {"the simulation leaves out what limits this run"};
        }
      }
    }
    if (judged.found && judged.found->is) {
      made.limit = verdict_name(*judged.found->is);
      made.stage = judged.found->stage;
    }
    return "";
  }

  const tune_options& options_;
  const search_space& space_;
  diagnostic_log& diagnostics_;
  std::string dir_;
  std::size_t folder_ = 0;
  forecast predictions_;
  search search_;
};

}  // namespace

int run_tune(const tune_options& options, std::ostream& out, std::ostream& err) {
  if (!options.metric.empty()) metric_expression(options.metric);
  const search_space space(options.knobs, options.program, options.start);
  diagnostic_log diagnostics(err, options.quiet);
  tuner all(options, space, diagnostics);
  const tune_result result = all.tune();
  if (options.json) {
    print_json(result, out);
  } else {
    print_tune(result, out);
  }
  diagnostics.note("the logs of all runs are in " + result.dir + "/");
  if (interrupted_by() != 0) return 128 + interrupted_by();
  const measured_configuration* const best = result.found->best();
  if (best == nullptr) return exit_bad_input;
  return options.target_per_s && !result.found->reaches_target(*best) ? exit_no_answer : exit_fine;
}

}  // namespace lotus::tool
