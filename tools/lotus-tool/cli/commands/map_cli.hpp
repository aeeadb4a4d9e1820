// Defines the arguments of lotus-tool map.
#ifndef LOTUS_TOOL_CLI_COMMANDS_MAP_CLI_HPP
#define LOTUS_TOOL_CLI_COMMANDS_MAP_CLI_HPP

#include "cli/action.hpp"
#include "mapping/attribution.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lotus::tool {

/// Adds the command `map` and its subcommands to `app`. The subcommand that the user calls stores
/// its function in `chosen`, which must outlive `app`.
void add_map(CLI::App& app, action& chosen);

/// The options that add_attribution() adds to a command, except --weights. Callers use these
/// pointers to tell CLI11 which options need or exclude each other.
struct attribution_arguments {
  CLI::Option* mapping;
  CLI::Option* counters;
  CLI::Option* elapsed;
};
attribution_arguments add_attribution(CLI::App& command, attribution_inputs& options);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_COMMANDS_MAP_CLI_HPP
