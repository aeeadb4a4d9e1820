// Predicts how much faster a run becomes if a bottleneck is reduced, and suggests changes.
#ifndef LOTUS_TOOL_FINDINGS_GAINS_HPP
#define LOTUS_TOOL_FINDINGS_GAINS_HPP

#include <optional>
#include <string>
#include <vector>

#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/prediction.hpp"

namespace lotus::tool {

/// A change must shorten the run by at least this share (5 %) to be suggested.
inline constexpr double worthwhile = 0.05;

struct bound_gain {
  verdict bound = verdict::balanced;
  std::string stage;  ///< name of the stage, if `bound` is stage_bound
  /// Run time before the change ÷ run time after it, both without the pauses between epochs.
  double gain = 1;
};

/// Simulates the run once for each possible bottleneck, with this bottleneck reduced: work becomes
/// 1.25 times as fast, or a setting, such as the prefetch depth, no longer limits the run. In the
/// result, settings come before work, because settings are easier to change.
std::vector<bound_gain> gains_of(const what_if& run);

/// Returns the first entry whose gain is within one percentage point of the largest gain;
/// `balanced` if the largest gain is below 5 %. Of nearly equal gains, this prefers settings to
/// work.
bound_gain largest_gain(const std::vector<bound_gain>& gains);

/// A suggestion: a change that the user can make.
struct suggestion {
  pipeline_change change;
  prediction would_be;
  double now_per_s = 0;  ///< throughput of the run without the change, in batches per second
  std::string what;      ///< the change in words
  /// Why the change may gain nothing, or much less, such as "if CPUs are free"; empty if it
  /// certainly gains.
  phrase condition{};
  /// More about it, such as how to find out whether the change gains. It begins with a separator,
  /// as in ". Record again without other programs".
  phrase note{};
  bool only_if = false;  ///< whether `condition` says when the change gains: "if CPUs are free"
};

/// Returns the change with its predicted effect and, if this is uncertain, how to find out more.
std::string text_of(const suggestion& m);

/// The changes that diagnose suggests.
struct suggested_changes {
  /// At most three changes, most valuable first, that are predicted to gain 5 % or more and whose
  /// confidence interval excludes "no gain". A change of settings comes first, then operations that
  /// should become twice as fast.
  ///
  /// The settings are the cheapest combination of up to 16 workers and prefetch depths 1, 2, 4
  /// that gains nearly as much as the best combination: at most 1 % less, or 5 % less if it needs
  /// fewer workers than the run had, or if batches were built on demand. Out-of-order delivery is
  /// suggested only if it gains 3 % more, and more workers than CPUs only if CPUs are not the
  /// limit.
  std::vector<suggestion> suggestions;
  /// Changes whose confidence interval includes "no gain" or depends on what the recording does not
  /// show (see bound_words()), with advice on how to find out more. The last entry suggests more
  /// CPUs if CPUs are the limit.
  std::vector<suggestion> possible;
  /// Assumptions behind the first suggestion that the recording cannot confirm.
  std::vector<phrase> assumptions;
};

/// Returns the changes that are worth suggesting to the user.
/// @param is  the verdict. For an order-bound run, receiving batches in any order is also suggested
///   without another change: it is cheaper than the best settings if these need more workers.
/// @param consumer_per_s  batches per second that the consumer could process if it never had to
///   wait for one. A change that does not make the step faster cannot exceed this throughput.
/// @param together  changes of several parts, which are suggested if no change of one part is.
suggested_changes suggest(const what_if& run, const run_data& data, verdict is,
                          std::optional<double> consumer_per_s,
                          const std::vector<pipeline_change>& together);

/// Returns the prediction for steps that take half the time; nullopt if the gain is less than 5 %.
std::optional<suggestion> faster_step(const what_if& run);

inline bool is_work(const path_share& share) noexcept {
  return share.kind == path_kind::operation || share.kind == path_kind::stage;
}

/// An operation or a stage, with its share of the critical path and the predicted effect of making
/// it faster. Both gains are factors by which the run would be faster; 1 means no effect.
struct path_gain {
  path_share path;
  double gain = 1;       ///< gain if the operation or stage were 1.25 times faster
  double gain_free = 1;  ///< gain if the operation or stage took no time
};

/// Returns the factor by which the run would be faster if an operation or a stage took no time.
/// `name` is its name in the program, without the S that begins all names in logs.
double gain_without(const what_if& run, const std::string& name);

/// Returns the operations and stages that have at least 1 % of the critical path, largest gain
/// first; an empty list if the largest gain is below 1 %.
std::vector<path_gain> path_gains_of(const what_if& run, const critical_path& path);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_GAINS_HPP
