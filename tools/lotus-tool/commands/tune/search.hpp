// Decides which configuration to run next.
#ifndef LOTUS_TOOL_COMMANDS_TUNE_SEARCH_HPP
#define LOTUS_TOOL_COMMANDS_TUNE_SEARCH_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/tune/forecast.hpp"
#include "commands/tune/throughput.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "log/process_info.hpp"

namespace lotus::tool {

/// A configuration to run, with its predicted throughput.
struct next_run {
  configuration at;
  std::optional<double> predicted = {};  ///< batches per second
};

/// Why a run was not measured.
enum class run_fault : std::uint8_t {
  none,
  not_started,     ///< tune_run::why_not_started says why
  reads_terminal,  ///< runs have no terminal
  failed,          ///< ended with an exit status other than 0, or by a signal
  no_records,
  no_batches,  ///< tune_run::why_no_batches says why
  few_batches,
  no_rate,  ///< no line that the program printed matches --metric
};

/// One run of the user's program.
struct tune_run : next_run {
  std::optional<throughput> measured = {};  ///< missing if there is a fault
  run_fault fault = run_fault::none;
  std::string why_not_started = {};
  phrase why_no_batches = {};
  trial_result trial = {};
  record_counts records = {};
  std::string dir = {};               ///< folder with the logs; "" if there are none
  std::optional<verdict> limit = {};  ///< what limited the run
  std::string stage = {};             ///< the stage, if the limit is stage_bound
};

/// The combined results of all runs of one configuration.
struct measured_configuration {
  configuration at;
  throughput rate = {};
  std::uint64_t bytes = 0;
  std::size_t runs = 0;
  std::size_t fastest = 0;               ///< index of the fastest run
  std::optional<double> predicted = {};  ///< throughput predicted before the first run
};

/// Why there is no next run.
enum class search_end : std::uint8_t {
  first_run_failed,
  runs_used_up,
  every_configuration_run,
  target_reached,
  nothing_better,
};

struct configurations_left {
  std::size_t predicted = 0;      ///< how many have a prediction
  next_run best = {};             ///< the one with the best prediction
  std::size_t unknown = 0;        ///< how many have none
  bool predictions_hold = false;  ///< whether predictions were right so far
  phrase why_unknown{};           ///< why nothing can be predicted from the latest run, if so
};

/// Searches for the best configuration with few runs.
///
/// The first run has the start values. As long as runs can be simulated, the next one is the
/// configuration with the highest predicted throughput, unless the predicted gain is below 3 %.
/// Settings (knobs) whose effect cannot be simulated are searched one at a time. After two wrong
/// predictions, all settings are searched in this way. The value of a setting is doubled as long as
/// that gains 2 %, otherwise halved; then values in between are tried. A run that is much slower
/// than predicted is repeated if another program may have disturbed it. The runs that are then left
/// confirm a cheaper configuration, and repeat the two best configurations if it is unclear which
/// is better.
class search {
 public:
  struct limits {
    std::size_t runs = 6;
    std::optional<double> target_per_s;
  };

  /// @param space, predictions  must outlive this object.
  search(const search_space& space, const forecast& predictions, limits limit)
      : space_(space), predictions_(predictions), limits_(limit) {}

  /// Returns what to run next; nullopt if the search has ended.
  std::optional<next_run> next();
  void add(tune_run run);

  const search_space& space() const noexcept { return space_; }
  const std::vector<tune_run>& runs() const noexcept { return runs_; }
  /// Returns the configurations that ran, without those that failed.
  const std::vector<measured_configuration>& measured() const noexcept { return measured_; }
  /// Returns the best configuration: of those within 2 % of the highest throughput, or that reach
  /// the target, the one with the fewest threads, then with the least memory. Returns nullptr if
  /// every run failed.
  const measured_configuration* best() const;
  /// Returns the other configuration that is most likely as good as best(); nullptr if the
  /// confidence intervals show that all others are worse.
  const measured_configuration* rival() const;
  /// Returns the throughput with a 90 % interval that also covers the differences between runs of
  /// the same configuration. These differences are estimated from repeated runs and a usual value.
  throughput with_spread(const measured_configuration& one) const;
  /// Returns the throughput of one run alone, with an interval that also covers the differences
  /// between runs of the same configuration. `run.measured` must exist.
  throughput with_spread(const tune_run& run) const;
  /// Returns whether no configuration that ran is likely to be better than best() by more than 5 %.
  bool is_decided() const;
  /// Returns whether other programs used CPUs during a run while the run's threads waited for a
  /// CPU.
  static bool is_disturbed(const tune_run& run);
  bool reaches_target(const measured_configuration& one) const;
  /// Returns why the search has ended; nullopt if it has not.
  std::optional<search_end> ended() const noexcept { return ended_; }
  configurations_left left() const;

 private:
  double score(const configuration& at, double per_s) const;
  double score(const measured_configuration& one) const { return score(one.at, one.rate.per_s); }
  double score(const next_run& one) const { return score(one.at, *one.predicted); }
  bool was_run(const configuration& at) const;
  double spread() const;
  double possible_gain(const measured_configuration& one) const;
  bool predictions_hold() const;
  bool is_searched(std::size_t knob) const;
  std::optional<next_run> surprising_step() const;
  std::optional<next_run> other_size_step() const;
  std::vector<next_run> predicted_runs() const;
  std::optional<next_run> predicted_step() const;
  const measured_configuration* measured(const configuration& at) const;
  std::optional<next_run> joint_step() const;
  std::optional<double> newest_gain(std::size_t knob) const;
  std::vector<std::size_t> promising_knobs() const;
  std::optional<next_run> knob_step() const;
  bool is_as_good(std::size_t knob, std::size_t value) const;
  std::optional<std::size_t> step_along(std::size_t knob, bool between) const;
  std::optional<next_run> cheaper_step() const;
  std::optional<next_run> repeated_step() const;

  const search_space& space_;
  const forecast& predictions_;
  limits limits_;
  std::vector<tune_run> runs_;
  std::vector<measured_configuration> measured_;
  std::optional<search_end> ended_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TUNE_SEARCH_HPP
