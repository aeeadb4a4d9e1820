// Estimates from recorded runs how much busy CPUs slow each other down.
#ifndef LOTUS_TOOL_REPLAY_SPEED_LAW_HPP
#define LOTUS_TOOL_REPLAY_SPEED_LAW_HPP

#include <vector>

#include "replay/plan.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

struct estimated_law {
  speed_law law;
  double slowing_sd = 0;  ///< standard deviation of speed_law::slowing
  /// Mean number of busy CPUs during the tenth of the works with the most busy CPUs.
  double max_busy = 0;
  /// Whether the load of the CPUs varied enough to estimate speed_law::slowing from the runs.
  bool levels_seen = false;
};

/// Estimates the speed law: how much longer work takes while other CPUs are busy. Fits a line to
/// the CPU time of the work on a batch or item, relative to the mean of the stage, as a function of
/// the share of other CPUs that were busy. Combines the slope with a typical value of 6 ± 8 % (two
/// hyperthreads of one core slow each other down most).
///
/// Long work overlaps with more other work just because it is long, which would distort the slope.
/// The fit therefore uses an instrumental variable (Angrist and Pischke, Mostly Harmless
/// Econometrics, ch. 4): how busy the other CPUs were in the first moments of the work, which does
/// not depend on its length.
/// @param pipelines  recorded runs of one pipeline.
/// @param cpus       the number of CPUs that the runs could use; 0: unknown.
estimated_law estimate_speed(const std::vector<const recorded_pipeline*>& pipelines, double cpus);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_SPEED_LAW_HPP
