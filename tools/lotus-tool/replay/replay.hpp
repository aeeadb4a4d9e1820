// Simulates a plan, event by event.
#ifndef LOTUS_TOOL_REPLAY_REPLAY_HPP
#define LOTUS_TOOL_REPLAY_REPLAY_HPP

#include "replay/plan.hpp"

namespace lotus::tool {

/// Simulates all epochs one after the other. The result is deterministic. Time: O(n log t) for n
/// units and t threads.
replay_result replay(const replay_plan& plan);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_REPLAY_HPP
