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
  double gain = 1;    ///< time before ÷ after
};

/// Work becomes 1.25 times faster, a policy is dropped: the settings first, then work.
std::vector<bound_gain> gains_of(const what_if& run);

/// The largest gain; of those within one point of it the first. Balanced below 5 %.
bound_gain largest_gain(const std::vector<bound_gain>& gains);

/// Why nothing may rest on the replay of a run; "" where it is like the run.
std::string why_unlike(const what_if& run);

/// Something that a person can do.
struct move {
  std::string text;  ///< with what it would bring
  pipeline_change change;
  prediction would_be;
};

/// At most three that gain 5 % or more, the first one first: settings (of all with up to 16
/// workers and prefetch 1, 2, 4 the least that comes within 2 % of the best; out of order only
/// where that adds 3 %), then work that becomes twice as fast.
std::vector<move> moves_of(const what_if& run, const run_data& data);

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
