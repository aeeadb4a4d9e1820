// Adds the command `attach`.
#ifndef LOTUS_TOOL_CLI_COMMANDS_ATTACH_CLI_HPP
#define LOTUS_TOOL_CLI_COMMANDS_ATTACH_CLI_HPP

#include <CLI/CLI.hpp>

#include "cli/action.hpp"

namespace lotus::tool {

void add_attach(CLI::App& app, action& chosen);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_COMMANDS_ATTACH_CLI_HPP
