// Derives from a recording the rules by which a pipeline works, such as its order of dispatch.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_POLICIES_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_POLICIES_HPP

#include <cstdint>
#include <vector>

#include "model/run_data.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

struct spans_of_unit {
  batch_id batch;                  ///< the batch; for an item, the batch that contains the item
  std::vector<span_number> spans;  ///< the unit's spans, sorted by start
};

/// Sets the members of the pipeline that describe its rules: when the threads and the consumer are
/// ready in each epoch, how units (batches and items) are assigned to threads, how many units may
/// be in flight, and in which order the consumer receives batches.
/// @param units  the spans of each unit, with the same index as in pipeline.units.
void find_policies(const run_data& run, const std::vector<spans_of_unit>& units,
                   recorded_pipeline& pipeline);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_POLICIES_HPP
