// Changes that are worth asking about, one at a time.
#ifndef LOTUS_TOOL_REPLAY_SINGLE_CHANGES_HPP
#define LOTUS_TOOL_REPLAY_SINGLE_CHANGES_HPP

#include <string>
#include <vector>

#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// More and fewer threads, other prefetch, any order, each operation and stage that does 2 % of the
/// work or more 1.25 times and twice as fast and free, batches made beside the consumer, more CPUs,
/// no start-up, a shorter step: each only where it changes something.
std::vector<pipeline_change> single_changes(const recorded_pipeline& pipeline,
                                            const name_table& names);

/// The names that pipeline_change::faster may have: stages', then operations'; without their S.
std::vector<std::string> names_of_work(const recorded_pipeline& pipeline, const name_table& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_SINGLE_CHANGES_HPP
