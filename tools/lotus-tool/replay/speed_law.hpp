// Estimates from runs how much busy CPUs slow each other down.
#ifndef LOTUS_TOOL_REPLAY_SPEED_LAW_HPP
#define LOTUS_TOOL_REPLAY_SPEED_LAW_HPP

#include <vector>

#include "replay/plan.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

struct estimated_law {
  speed_law law;
  double slowing_sd = 0;     ///< standard deviation of speed_law::slowing
  double most_busy = 0;      ///< mean number of busy CPUs over the busiest tenth of the work
  bool levels_seen = false;  ///< the runs are enough to estimate it
};

/// Fits a line to CPU time as a function of the busy share of the other CPUs, each stage relative
/// to its own mean, and combines it with what is typical for such machines: 6 ± 8 % (two
/// hyperthreads of one core slow each other down most). Longer work overlaps with more other work
/// just because it is longer, so the fit uses an instrumental variable (Angrist and Pischke, Mostly
/// Harmless Econometrics, ch. 4): how busy the others were in the first moments of the work, which
/// do not depend on its length.
/// @param pipelines  recorded runs of one pipeline. @param cpus  that they could use; 0: unknown.
estimated_law estimate_speed(const std::vector<const recorded_pipeline*>& pipelines, double cpus);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_SPEED_LAW_HPP
