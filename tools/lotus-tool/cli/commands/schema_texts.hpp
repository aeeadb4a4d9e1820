// The JSON Schemas of outputs that are not described yet, which are embedded in the tool.
#ifndef LOTUS_TOOL_CLI_COMMANDS_SCHEMA_TEXTS_HPP
#define LOTUS_TOOL_CLI_COMMANDS_SCHEMA_TEXTS_HPP

#include <string_view>

namespace lotus::tool {

extern const std::string_view accelerator_schema;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_COMMANDS_SCHEMA_TEXTS_HPP
