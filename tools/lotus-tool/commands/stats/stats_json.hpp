// Prints statistics as JSON.
#ifndef LOTUS_TOOL_COMMANDS_STATS_STATS_JSON_HPP
#define LOTUS_TOOL_COMMANDS_STATS_STATS_JSON_HPP

#include <ostream>
#include <vector>

#include "commands/stats/stats.hpp"

namespace lotus::tool {

void print_stats_json(const std::vector<run_stats_result>& runs, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_STATS_STATS_JSON_HPP
