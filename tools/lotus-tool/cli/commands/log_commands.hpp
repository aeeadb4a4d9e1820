// Defines the arguments of the commands that write or read logs.
#ifndef LOTUS_TOOL_CLI_COMMANDS_LOG_COMMANDS_HPP
#define LOTUS_TOOL_CLI_COMMANDS_LOG_COMMANDS_HPP

#include "cli/action.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace lotus::tool {

/// Adds all commands that write or read logs to `app`, in the order in which the help lists them.
/// The command that the user calls stores its function in `chosen`.
void add_log_commands(CLI::App& app, action& chosen);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_COMMANDS_LOG_COMMANDS_HPP
