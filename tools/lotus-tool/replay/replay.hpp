// Simulates a planned run, event by event.
#ifndef LOTUS_TOOL_REPLAY_REPLAY_HPP
#define LOTUS_TOOL_REPLAY_REPLAY_HPP

#include "replay/plan.hpp"

namespace lotus::tool {

/// Simulates all epochs one after the other. The same plan always gives the same result. The time
/// is O(n log t) for n units (batches and items) and t threads.
replay_result replay(const replay_plan& plan);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_REPLAY_HPP
