// Finds the rules by which a pipeline worked from what it did.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_POLICIES_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_POLICIES_HPP

#include <cstdint>
#include <vector>

#include "model/run_data.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

struct spans_of_unit {
  batch_id batch;                  ///< for an item, the batch that it becomes part of
  std::vector<span_number> spans;  ///< in order of start
};

/// Sets these members of the pipeline: when threads and consumer are ready in each epoch, which
/// thread begins with which unit, what bounds the number in flight, and in which order batches are
/// received.
/// @param units  of pipeline.units.
void find_policies(const run_data& run, const std::vector<spans_of_unit>& units,
                   recorded_pipeline& pipeline);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_POLICIES_HPP
