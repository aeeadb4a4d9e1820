// Prints what a described output contains: as JSON Schema for programs, and as tables for people.
#ifndef LOTUS_TOOL_DESCRIBE_SCHEMA_HPP
#define LOTUS_TOOL_DESCRIBE_SCHEMA_HPP

#include <ostream>
#include <string_view>

#include "describe/description.hpp"

namespace lotus::tool {

/// Prints the JSON Schema (draft 2020-12) of an output.
/// @param title  what prints the output, such as "lotus-tool stats --json".
void print_schema(std::string_view title, const value_type& output, std::ostream& out);

/// Prints a Markdown table of the keys of each object in an output.
void print_keys(const value_type& output, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_DESCRIBE_SCHEMA_HPP
