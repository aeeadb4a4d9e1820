// Lists single changes to a pipeline that are worth simulating.
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

/// Returns the changes that apply to the pipeline: more or fewer threads, except in stages that are
/// mostly idle; another prefetch depth or number of batches in flight; out-of-order delivery; a
/// separate thread if the consumer builds its batches itself; more CPUs; no start-up; a shorter
/// step. Each operation and stage with at least 2 % of the work becomes 1.25 times as fast, twice
/// as fast, or free.
std::vector<pipeline_change> single_changes(const recorded_pipeline& pipeline,
                                            const name_table& names);

/// Returns whether a stage may need more threads after `change`. Returns false if the threads of
/// the stage work less than half as much as those of the busiest stage, because additional threads
/// would only be idle.
bool may_need_threads(const recorded_pipeline& pipeline, const pipeline_change& change,
                      std::size_t stage);

/// Returns the names that pipeline_change::faster accepts: the stages, then the operations. The
/// names are those in the program, without the S that logs put before each name.
std::vector<std::string> names_of_work(const recorded_pipeline& pipeline, const name_table& names);

/// For each operation that does at least 90 % of its work in one stage: maps the operation's name
/// to the stage's name. Both names are those in the program.
std::map<std::string, std::string> stages_of_operations(const recorded_pipeline& pipeline,
                                                        const name_table& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_SINGLE_CHANGES_HPP
