// Lists changes that are worth simulating, one at a time.
#ifndef LOTUS_TOOL_REPLAY_SINGLE_CHANGES_HPP
#define LOTUS_TOOL_REPLAY_SINGLE_CHANGES_HPP

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// Returns the changes that apply to the pipeline: more or fewer threads, except in idle stages;
/// another prefetch depth or number of batches in flight; out-of-order delivery; each operation and
/// stage with at least 2 % of the work becomes 1.25 times as fast, twice as fast, or free; a
/// separate thread if the consumer builds its batches itself; more CPUs; no start-up; a shorter
/// step.
std::vector<pipeline_change> single_changes(const recorded_pipeline& pipeline,
                                            const name_table& names);

/// Returns false for a stage whose threads work less than half as long as those of the busiest
/// stage after `change`: more threads in such a stage would only be idle.
bool may_need_threads(const recorded_pipeline& pipeline, const pipeline_change& change,
                      std::size_t stage);

/// Returns the names that pipeline_change::faster accepts: the stages, then the operations. The
/// names are those in the program; logs put an S before each name.
std::vector<std::string> names_of_work(const recorded_pipeline& pipeline, const name_table& names);

/// For each operation that does at least 90 % of its work in one stage: returns the name of this
/// stage, by the operation's name. Both are names in the program.
std::map<std::string, std::string> stages_of_operations(const recorded_pipeline& pipeline,
                                                        const name_table& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_SINGLE_CHANGES_HPP
