// The JSON Schemas of the --json outputs, which are embedded in the tool at build time.
#ifndef LOTUS_TOOL_COMMANDS_SCHEMA_SCHEMA_TEXTS_HPP
#define LOTUS_TOOL_COMMANDS_SCHEMA_SCHEMA_TEXTS_HPP

#include <string_view>

namespace lotus::tool {

extern const std::string_view stats_schema;
extern const std::string_view diagnose_schema;
extern const std::string_view whatif_schema;
extern const std::string_view tune_schema;
extern const std::string_view compare_schema;
extern const std::string_view accelerator_schema;
extern const std::string_view threads_schema;
/// Schema of `map build`, `map run` and the mapping file.
extern const std::string_view map_schema;
extern const std::string_view map_attribute_schema;
extern const std::string_view map_join_schema;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_SCHEMA_SCHEMA_TEXTS_HPP
