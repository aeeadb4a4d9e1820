// Defines the arguments of the commands.
#ifndef LOTUS_TOOL_CLI_COMMANDS_LOG_COMMANDS_HPP
#define LOTUS_TOOL_CLI_COMMANDS_LOG_COMMANDS_HPP

#include <CLI/CLI.hpp>
#include <vector>

#include "cli/reading_options.hpp"
#include "mapping/attribution.hpp"

namespace lotus::tool {

/// Adds all commands that write or read logs to `app`, in the order in which the help lists them.
/// The command that the user calls stores its function in `chosen`.
void add_log_commands(CLI::App& app, action& chosen);

// Add one command each.
void add_attach(CLI::App& app, action& chosen);
void add_export(CLI::App& app, action& chosen);
void add_map(CLI::App& app, action& chosen);
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

/// Returns the names of the options of `lotus-tool whatif` that change the pipeline.
std::vector<const char*> names_of_changes();

/// The options that add_attribution() adds to a command, except --weights. Callers use these
/// pointers to tell CLI11 which options need or exclude each other.
struct attribution_arguments {
  CLI::Option* mapping;
  CLI::Option* counters;
  CLI::Option* elapsed;
};
attribution_arguments add_attribution(CLI::App& command, attribution_inputs& options);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_COMMANDS_LOG_COMMANDS_HPP
