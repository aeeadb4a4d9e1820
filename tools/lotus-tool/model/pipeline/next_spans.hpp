// Finds the next span of a batch or an item on its route through the stages.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_NEXT_SPANS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_NEXT_SPANS_HPP

#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// Returns, for each span of run_batches::preprocessing_spans(), the next span of the same item or
/// batch. For the last span of an item, this is the next span of the batch that contains the item.
/// nullopt: no span follows, because the consumer received the batch next.
std::vector<optional_span> next_spans(const run_batches& batches);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_NEXT_SPANS_HPP
