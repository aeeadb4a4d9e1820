// Lists changes that are worth simulating, one at a time.
#ifndef LOTUS_TOOL_REPLAY_SINGLE_CHANGES_HPP
#define LOTUS_TOOL_REPLAY_SINGLE_CHANGES_HPP

#include <string>
#include <vector>

#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// More and fewer threads, other prefetch, out-of-order delivery, each operation and stage with at
/// least 2 % of the work 1.25 times and twice as fast and free, a separate thread if the consumer
/// builds its batches, more CPUs, no start-up, a shorter step: each only if it applies to the
/// pipeline.
std::vector<pipeline_change> single_changes(const recorded_pipeline& pipeline,
                                            const name_table& names);

/// Returns the names that pipeline_change::faster may contain: stages, then operations, without the
/// leading S.
std::vector<std::string> names_of_work(const recorded_pipeline& pipeline, const name_table& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_SINGLE_CHANGES_HPP
