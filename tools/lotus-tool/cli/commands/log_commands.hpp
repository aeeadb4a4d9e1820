// Defines the arguments of the commands that read logs.
#ifndef LOTUS_TOOL_CLI_COMMANDS_LOG_COMMANDS_HPP
#define LOTUS_TOOL_CLI_COMMANDS_LOG_COMMANDS_HPP

#include "cli/action.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace lotus::tool {

/// Adds viz, stats, map, diagnose, compare, report and recover to the program, in this order.
void add_log_commands(CLI::App& app, action& chosen);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_COMMANDS_LOG_COMMANDS_HPP
