// Decides for each stage whether the numbers of its spans identify items or batches.
#ifndef LOTUS_TOOL_MODEL_BATCHES_ITEM_STAGES_HPP
#define LOTUS_TOOL_MODEL_BATCHES_ITEM_STAGES_HPP

#include <cstdint>
#include <set>
#include <vector>

#include "model/pipeline/side_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// Returns the stages that process items rather than batches, by the rules described at
/// find_preprocessings().
std::set<stage_id> item_stages(const batch_records& records, const std::vector<stage_span>& stages,
                               const std::vector<batch_inclusion>& inclusions);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_BATCHES_ITEM_STAGES_HPP
