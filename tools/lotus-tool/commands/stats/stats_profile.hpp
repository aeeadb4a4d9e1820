// Prints statistics in the format of Python's cProfile.
#ifndef LOTUS_TOOL_COMMANDS_STATS_STATS_PROFILE_HPP
#define LOTUS_TOOL_COMMANDS_STATS_STATS_PROFILE_HPP

#include <ostream>

#include "commands/stats/stats.hpp"

namespace lotus::tool {

/// Prints calls and times by name, for run_stats() with stats_form::profile. Returns the exit
/// status.
int print_stats_profile(const stats_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_STATS_STATS_PROFILE_HPP
