// Defines the arguments of viz, report, export and unpack, which write files for other programs.
#ifndef LOTUS_TOOL_CLI_COMMANDS_OUTPUT_COMMANDS_HPP
#define LOTUS_TOOL_CLI_COMMANDS_OUTPUT_COMMANDS_HPP

#include <CLI/CLI.hpp>

#include "cli/action.hpp"

namespace lotus::tool {

void add_viz(CLI::App& app, action& chosen);
void add_report(CLI::App& app, action& chosen);
void add_export(CLI::App& app, action& chosen);
void add_unpack(CLI::App& app, action& chosen);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_COMMANDS_OUTPUT_COMMANDS_HPP
