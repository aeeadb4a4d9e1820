// Computes what a run would gain if each of its bounds were loosened, and suggests changes.
#ifndef LOTUS_TOOL_VERDICT_GAINS_HPP
#define LOTUS_TOOL_VERDICT_GAINS_HPP

#include <optional>
#include <string>
#include <vector>

#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/prediction.hpp"
#include "verdict/verdict.hpp"

namespace lotus::tool {

/// Gains below this share of the time are not worth suggesting.
inline constexpr double worthwhile = 0.05;

struct bound_gain {
  verdict bound = verdict::balanced;
  std::string stage;  ///< its name, if the bound is a stage
  double gain = 1;    ///< time before ÷ after, without the pauses between epochs
};

/// Simulates the run with each bound loosened: work becomes 1.25 times faster, a policy is dropped.
/// Settings come first, then work.
std::vector<bound_gain> gains_of(const what_if& run);

/// Returns the largest gain; of those within one percentage point of it, the first. Balanced if it
/// is below 5 %.
bound_gain largest_gain(const std::vector<bound_gain>& gains);

/// Why the simulation of a run cannot be trusted; "" if it reproduces the run.
std::string why_unlike(const what_if& run);

/// A suggestion: a change that the user can make.
struct move {
  std::string text;  ///< with the predicted effect and, if that is uncertain, how to find out
  pipeline_change change;
  prediction would_be;
  std::string what;  ///< the text of the change alone
};

/// Changes that are worth making, and changes that may be.
struct suggestions {
  /// At most three changes that gain 5 % or more and whose confidence interval excludes "no gain",
  /// most valuable first. First settings: among all combinations of up to 16 workers and prefetch
  /// 1, 2, 4, the cheapest within 1 % of the best; out-of-order delivery only if that adds 3 %; no
  /// more workers than CPUs if these are the limit. Then work that becomes twice as fast.
  std::vector<move> moves;
  /// Changes whose confidence interval includes "no gain", with what would decide it; then more
  /// CPUs, if these are the limit.
  std::vector<move> possible;
  /// Assumptions on which the first of `moves` depends and which the recording cannot confirm.
  std::vector<std::string> assumptions;
};

/// @param consumer_per_s  batches per second that the consumer alone could process: the upper bound
///                        for every change that does not alter its step.
suggestions suggest(const what_if& run, const run_data& data, std::optional<double> consumer_per_s);

/// Whether twice as many CPUs, in addition to `change`, would gain 5 %.
bool is_limited_by_cpus(const what_if& run, const pipeline_change& change);

/// "Fetch is serial (a lock or a device): ..."; "" if the recording does not show any limit.
std::string limit_text(const what_if& run);

/// "Other programs had 26 % of the CPUs"; only if others_share() is above 0.
std::string others_text(const what_if& run);

/// An operation or a stage with its share of the critical path.
struct attack {
  path_share path;
  double gain = 1;       ///< of the whole run, if this were 1.25 times faster
  double gain_free = 1;  ///< if this cost nothing
};

/// The gain of the whole run if an operation or a stage cost nothing. `name` is without the leading
/// S.
double gain_without(const what_if& run, const std::string& name);

/// Returns the operations and stages with at least 1 % of the critical path, largest gain first;
/// none if the largest gain is below 1 %.
std::vector<attack> attacks_of(const what_if& run, const critical_path& path);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_GAINS_HPP
