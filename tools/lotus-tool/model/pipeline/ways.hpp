// Finds the next span of a batch or an item on its route through the stages.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_WAYS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_WAYS_HPP

#include <cstdint>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// Returns, for every span of run_batches::making(), the span after it: of the same item, else of
/// the batch that the item became part of. nullopt if the consumer received the batch next.
std::vector<optional_span> next_makings(const run_batches& batches);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_WAYS_HPP
