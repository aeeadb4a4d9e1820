// lotus-tool schema: prints the JSON Schema of a command's --json output.
#ifndef LOTUS_TOOL_COMMANDS_SCHEMA_SCHEMA_HPP
#define LOTUS_TOOL_COMMANDS_SCHEMA_SCHEMA_HPP

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// A command with the option --json, and the JSON Schema (version 2020-12) of its output.
struct command_schema {
  std::string_view command;  ///< words of the command as the user types them, such as "map join"
  std::string_view text;
};

/// Returns all schemas, in the order of the commands in the help.
const std::vector<command_schema>& command_schemas();

/// Prints the schema of the command that consists of `words`. Throws usage_error if there is none.
int run_schema(const std::vector<std::string>& words, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_SCHEMA_SCHEMA_HPP
