// Defines the arguments of lotus-tool mcp.
#ifndef LOTUS_TOOL_CLI_COMMANDS_MCP_CLI_HPP
#define LOTUS_TOOL_CLI_COMMANDS_MCP_CLI_HPP

#include <CLI/CLI.hpp>

#include "cli/action.hpp"

namespace lotus::tool {

void add_mcp(CLI::App& app, action& chosen);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_COMMANDS_MCP_CLI_HPP
