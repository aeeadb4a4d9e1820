// Defines the arguments of the commands.
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

// Add one command each.
void add_attach(CLI::App& app, action& chosen);
void add_export(CLI::App& app, action& chosen);
void add_mcp(CLI::App& app, action& chosen);
void add_report(CLI::App& app, action& chosen);
void add_run(CLI::App& app, action& chosen);
void add_schema(CLI::App& app, action& chosen);
void add_threads(CLI::App& app, action& chosen);
void add_top(CLI::App& app, action& chosen);
void add_tune(CLI::App& app, action& chosen);
void add_unpack(CLI::App& app, action& chosen);
void add_viz(CLI::App& app, action& chosen);
void add_whatif(CLI::App& app, action& chosen);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_COMMANDS_LOG_COMMANDS_HPP
