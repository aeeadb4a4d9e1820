// Prints statistics as tables.
#ifndef LOTUS_TOOL_COMMANDS_STATS_STATS_TABLE_HPP
#define LOTUS_TOOL_COMMANDS_STATS_STATS_TABLE_HPP

#include <ostream>
#include <vector>

#include "commands/stats/stats.hpp"

namespace lotus::tool {

void print_stats_table(const std::vector<run_stats_result>& runs, const stats_options& options,
                       std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_STATS_STATS_TABLE_HPP
