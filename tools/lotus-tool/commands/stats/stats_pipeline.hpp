// Computes and prints statistics of stages, items, asynchronous operations and counters.
#ifndef LOTUS_TOOL_COMMANDS_STATS_STATS_PIPELINE_HPP
#define LOTUS_TOOL_COMMANDS_STATS_STATS_PIPELINE_HPP

#include <cstddef>
#include <ostream>

#include "base/formats/json_writer.hpp"
#include "commands/stats/stats.hpp"

namespace lotus::tool {

/// Adds the statistics of stages, items, asynchronous operations and counters to `result`.
/// @param slowest  number of the slowest items to add with their stages.
void collect_pipeline(run_stats_result& result, std::size_t slowest);

/// Prints tables of what collect_pipeline() has added, or nothing if a run has no such statistics.
/// @param slowest  whether to print the stages of the slowest items.
void print_pipeline_table(const run_stats_result& run, bool slowest, std::ostream& out);
/// Writes the statistics that collect_pipeline() has added as members of the run's JSON object.
/// Leaves out members without data.
void write_pipeline_json(json_writer& json, const run_stats_result& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_STATS_STATS_PIPELINE_HPP
