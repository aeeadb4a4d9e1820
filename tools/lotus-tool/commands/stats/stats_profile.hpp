// Prints statistics like Python's cProfile.
#ifndef LOTUS_TOOL_COMMANDS_STATS_STATS_PROFILE_HPP
#define LOTUS_TOOL_COMMANDS_STATS_STATS_PROFILE_HPP

#include <ostream>

#include "commands/stats/stats.hpp"

namespace lotus::tool {

/// Executes run_stats() for stats_form::profile: calls and times by name. Returns the exit status.
int print_stats_profile(const stats_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_STATS_STATS_PROFILE_HPP
