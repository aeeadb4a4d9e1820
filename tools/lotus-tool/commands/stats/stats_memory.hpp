// What operations did to the heap, and what stays behind with every batch.
#ifndef LOTUS_TOOL_COMMANDS_STATS_STATS_MEMORY_HPP
#define LOTUS_TOOL_COMMANDS_STATS_STATS_MEMORY_HPP

#include <ostream>

#include "base/json_writer.hpp"
#include "commands/stats/stats.hpp"

namespace lotus::tool {

/// The section of the table; nothing where nothing was counted.
void print_memory_table(const run_stats_result& run, std::ostream& out);
/// Members of a run's JSON object, each only where there is something of it.
void write_memory_json(json_writer& json, const run_stats_result& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_STATS_STATS_MEMORY_HPP
