// Stages that limit a run together.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_EQUAL_STAGES_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_EQUAL_STAGES_HPP

#include <vector>

#include "findings/diagnosis.hpp"
#include "model/pipeline/stages.hpp"
#include "replay/change.hpp"

namespace lotus::tool {

/// Returns the stages that limit a run together: one of them alone could become faster without
/// effect, because another one cannot process more. Empty if there is at most one.
std::vector<const stage_figures*> equal_stages(const diagnosis& d);

/// Returns changes of several stages at once: twice as fast, and twice as many threads. Empty if
/// there are no stages.
std::vector<pipeline_change> changes_of_all(const std::vector<const stage_figures*>& stages);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_EQUAL_STAGES_HPP
