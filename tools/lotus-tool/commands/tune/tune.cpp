#include "commands/tune/tune.hpp"

#include <filesystem>
#include <memory>
#include <system_error>

#include "base/child_process.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "commands/tune/forecast.hpp"
#include "commands/tune/throughput.hpp"
#include "commands/tune/trial.hpp"
#include "curve/measured_runs.hpp"
#include "describe/description.hpp"
#include "findings/checks/check.hpp"
#include "findings/claims.hpp"
#include "findings/diagnosis.hpp"
#include "log/folder/log_files.hpp"
#include "log/folder/starts.hpp"
#include "model/run_data.hpp"
#include "replay/prediction.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "waits/join/limiting_lock.hpp"

namespace lotus::tool {
namespace {

/// Whether a throughput is so exact that the run can end: at least `many` values were measured, and
/// the confidence interval is at most 6 % wide.
bool is_exact(const std::optional<throughput>& rate, std::size_t many) {
  constexpr double near = 0.03;
  return rate && rate->values >= many && rate->high - rate->low <= 2 * near * rate->per_s;
}

/// Reads the records of a running program. Returns whether its throughput is exact enough.
bool is_measured(const launched& place) {
  diagnostic_log silent = diagnostic_log::silenced();
  try {
    const std::vector<run_files> runs = find_runs(place.dir, place.prefix, silent);
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
        diagnostics_(diagnostics),
        dir_(options.dir.empty() ? unused_folder("tune") : options.dir),
        predictions_(space),
        search_(space, predictions_, {options.runs, options.target_per_s}) {}

  tune_result tune() {
    const until_interrupted signals;
    while (const std::optional<next_run> next = search_.next()) {
      // Choosing the next run may take long, so a signal such as that of Ctrl-C may have arrived.
      if (interrupted_by() == 0) search_.add(run(*next));
      if (interrupted_by() != 0) break;
      diagnostics_.note(printable_line(run_line(search_, options_.runs)));
    }
    return {&search_, options_.target_per_s, interrupted_by(), dir_, curve()};
  }

 private:
  /// Returns the curve of the first run over the first setting that can be predicted; nullopt if
  /// there is none, or only one run.
  std::optional<speed_curve> curve() const {
    if (search_.runs().size() < 2 || search_.runs().front().dir.empty()) return std::nullopt;
    diagnostic_log silent = diagnostic_log::silenced();
    for (const knob& k : search_.space().knobs()) {
      if (k.meaning != knob_meaning::workers && k.meaning != knob_meaning::prefetch &&
          k.meaning != knob_meaning::stage) {
        continue;
      }
      try {
        const std::vector<run_files> files =
            find_runs(search_.runs().front().dir, default_prefix, silent);
        const run_data run = read_run(files.front(), checked_parts, silent);
        const judgement judged = diagnose_run(run, 0, silent, predictions::none);
        if (!why_not_predicted(run, judged).empty()) return std::nullopt;
        measured_runs others{std::string(default_prefix)};
        return draw_curve(*judged.simulated, run, *judged.found,
                          axis_named(k.name, judged.simulated->recorded(), run.names),
                          others.others_than(files.front()));
      } catch (const input_error&) {
        // The run has no such setting.
      }
    }
    return std::nullopt;
  }

  tune_run run(const next_run& next) {
    tune_run made{next};
    trial_request request;
    request.command = search_.space().command(next.at);
    request.environment = search_.space().environment(next.at);
    request.dir = new_folder();
    request.seconds = options_.seconds;
    request.metric = options_.metric;
    request.is_enough = [printed = !options_.metric.empty()](
                            const launched& place, const std::vector<printed_rate>& rates) {
      constexpr std::size_t many = 20;
      return printed ? is_exact(printed_throughput(rates), many) : is_measured(place);
    };
    try {
      made.trial = run_trial(request);
    } catch (const input_error& error) {
      made.fault = run_fault::not_started;
      made.why_not_started = error.what();
      return made;
    }
    const trial_result& trial = made.trial;
    if (trial.stopped) {
      made.fault = run_fault::reads_terminal;
    } else if (!trial.cut_off && !trial.interrupted && trial.end.status != 0) {
      made.fault = run_fault::failed;
    } else {
      measure(made);
    }
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

  void measure(tune_run& made) {
    auto recorded = std::make_unique<recorded_trial>();
    made.fault = read(made, *recorded);
    const bool is_recorded = made.fault == run_fault::none;
    if (!options_.metric.empty()) {
      made.measured = printed_throughput(made.trial.printed.rates);
      made.fault = made.measured ? run_fault::none : run_fault::no_rate;
    } else if (is_recorded) {
      made.measured = steady_throughput(receptions_of(recorded->run.batches), made.trial.begin_ns);
      made.fault = made.measured ? run_fault::none : run_fault::few_batches;
    }
    if (made.measured && is_recorded) {
      predictions_.learn(made.at, std::move(recorded), made.measured->per_s);
    }
  }

  /// Reads the program's records. Returns why they cannot be used.
  static run_fault read(tune_run& made, recorded_trial& to) {
    diagnostic_log silent = diagnostic_log::silenced();
    try {
      std::vector<run_files> runs =
          find_runs(made.trial.place.dir, made.trial.place.prefix, silent);
      // The first run is that of the default loader, which is most likely the training's.
      to.files = std::move(runs.front());
      to.run = read_run(to.files, checked_parts, silent);
    } catch (const input_error&) {
      return run_fault::no_records;
    }
    made.dir = made.trial.place.dir;
    made.records = to.run.records;
    if (to.run.batches.all().empty()) {
      made.why_no_batches = why_no_pipeline(to.run);
      return run_fault::no_batches;
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
    if (judged.found) {
      made.limit = judged.found->is;
      made.stage = judged.found->stage;
    }
    return run_fault::none;
  }

  const tune_options& options_;
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
