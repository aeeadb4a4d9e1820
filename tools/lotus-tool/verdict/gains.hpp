// What a run gains by each of its bounds being loosened, and what to do.
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

/// What is below this share of the time is worth nobody's trouble.
inline constexpr double worthwhile = 0.05;

struct bound_gain {
  verdict bound = verdict::balanced;
  std::string stage;  ///< its name, where it is one
  double gain = 1;    ///< time before ÷ after, without what lies between epochs
};

/// Work becomes 1.25 times faster, a policy is dropped: the settings first, then work.
std::vector<bound_gain> gains_of(const what_if& run);

/// The largest gain; of those within one point of it the first. Balanced below 5 %.
bound_gain largest_gain(const std::vector<bound_gain>& gains);

/// Why nothing may rest on the replay of a run; "" where it is like the run.
std::string why_unlike(const what_if& run);

/// Something that a person can do.
struct move {
  std::string text;  ///< with what it would bring, and where that is open, how to find out
  pipeline_change change;
  prediction would_be;
  std::string what;  ///< the change alone
};

/// What is worth doing, and what may be.
struct suggestions {
  /// At most three that surely gain, by 5 % or more; the first one first: settings (of all with up
  /// to 16 workers and prefetch 1, 2, 4 the least that comes within 1 % of the best; out of order
  /// only where that adds 3 %; no more workers than CPUs where these are the limit), then work that
  /// becomes twice as fast.
  std::vector<move> moves;
  /// Whose interval contains "no gain", with what would decide it; then more CPUs, where these are
  /// the limit.
  std::vector<move> possible;
  /// What decides the first one, and is not known from the recording.
  std::vector<std::string> assumptions;
};

/// @param consumer_per_s  batches that the consumer alone could take: no change that leaves its
///                        step as it is brings more.
suggestions suggest(const what_if& run, const run_data& data, std::optional<double> consumer_per_s);

/// Whether twice as many CPUs would gain 5 %.
bool is_limited_by_cpus(const what_if& run, const pipeline_change& change);

/// "Fetch is serial (a lock or a device): ..."; "" where nothing is shown to be limited.
std::string limit_text(const what_if& run);

/// "Other programs had 26 % of the CPUs"; only where others_share() is above 0.
std::string others_text(const what_if& run);

/// An operation or a stage, by what it has of the run's length.
struct attack {
  path_share path;
  double gain = 1;       ///< of the whole run, were it 1.25 times faster
  double gain_free = 1;  ///< cost it nothing
};

/// Gain of the whole run if an operation or a stage, by its name without S, cost nothing.
double gain_without(const what_if& run, const std::string& name);

/// Those with at least 1 % of the critical path, the largest gain first; none where none gains 1 %.
std::vector<attack> attacks_of(const what_if& run, const critical_path& path);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_GAINS_HPP
