// Defines the arguments of lotus-tool whatif.
#ifndef LOTUS_TOOL_CLI_COMMANDS_WHATIF_CLI_HPP
#define LOTUS_TOOL_CLI_COMMANDS_WHATIF_CLI_HPP

#include <CLI/CLI.hpp>

#include "cli/action.hpp"

namespace lotus::tool {

void add_whatif(CLI::App& app, action& chosen);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_COMMANDS_WHATIF_CLI_HPP
