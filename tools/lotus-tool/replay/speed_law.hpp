// How much busy CPUs slow each other, estimated from runs.
#ifndef LOTUS_TOOL_REPLAY_SPEED_LAW_HPP
#define LOTUS_TOOL_REPLAY_SPEED_LAW_HPP

#include <vector>

#include "replay/plan.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

struct estimated_law {
  speed_law law;
  double slowing_sd = 0;     ///< how sure speed_law::slowing is
  double most_busy = 0;      ///< CPUs that worked at once, mean over the busiest tenth of the work
  bool levels_seen = false;  ///< the runs tell what busy CPUs do to each other
};

/// A line through CPU time over the other CPUs' share that was busy, each stage's about its own
/// mean; weighed with what such machines show: 6 +- 8 % (two hyperthreads of one core slow each
/// other most). Who works longer is beside more others for that alone, so the line is by the
/// method of instrumental variables (Angrist and Pischke, Mostly Harmless Econometrics, ch. 4): how
/// busy the others were in a work's first moments, which its length does not change.
/// @param pipelines  recorded runs of one pipeline. @param cpus  that they might use; 0: not known.
estimated_law estimate_speed(const std::vector<const recorded_pipeline*>& pipelines, double cpus);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_SPEED_LAW_HPP
