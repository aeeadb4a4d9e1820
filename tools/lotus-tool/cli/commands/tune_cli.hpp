// Defines the arguments of lotus-tool tune.
#ifndef LOTUS_TOOL_CLI_COMMANDS_TUNE_CLI_HPP
#define LOTUS_TOOL_CLI_COMMANDS_TUNE_CLI_HPP

#include <CLI/CLI.hpp>

#include "cli/action.hpp"

namespace lotus::tool {

void add_tune(CLI::App& app, action& chosen);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_COMMANDS_TUNE_CLI_HPP
