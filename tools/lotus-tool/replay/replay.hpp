// Simulates a plan, event by event.
#ifndef LOTUS_TOOL_REPLAY_REPLAY_HPP
#define LOTUS_TOOL_REPLAY_REPLAY_HPP

#include "replay/plan.hpp"

namespace lotus::tool {

/// Simulates all epochs one after the other, event by event. Deterministic. The time is linear in
/// the number of units, times the logarithm of the number of threads.
replay_result replay(const replay_plan& plan);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_REPLAY_HPP
