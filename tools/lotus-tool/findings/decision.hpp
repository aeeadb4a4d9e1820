// Decides what limits a run: its facts, or what a simulation gains most from.
#ifndef LOTUS_TOOL_FINDINGS_DECISION_HPP
#define LOTUS_TOOL_FINDINGS_DECISION_HPP

#include "findings/claims.hpp"
#include "findings/diagnosis.hpp"
#include "findings/facts/facts.hpp"
#include "replay/prediction.hpp"

namespace lotus::tool {

/// Decides what limits the run. A finding about the hand-over of batches decides alone, because
/// the simulation knows nothing about it. Otherwise the largest gain decides, unless the facts
/// forbid its verdict or the simulation does not reproduce the run; then the largest finding does.
/// @param d  has its findings. Its verdict is set, or the reason why it has none.
void decide(const what_if& asked, const claims& facts, const run_facts& f, diagnosis& d);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_DECISION_HPP
