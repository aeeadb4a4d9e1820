// Where a batch or an item came next on its way through the stages.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_WAYS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_WAYS_HPP

#include <cstdint>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// For every span of run_batches::making() the one that came behind it: of the same item, else of
/// the batch that the item went into. None where the batch went to its consumer.
std::vector<optional_span> next_makings(const run_batches& batches);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_WAYS_HPP
