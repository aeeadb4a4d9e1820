// Prints a mapping as text and as CSV.
#ifndef LOTUS_TOOL_COMMANDS_MAP_MAPPING_PRINT_HPP
#define LOTUS_TOOL_COMMANDS_MAP_MAPPING_PRINT_HPP

#include <ostream>
#include <string>

#include "mapping/mapping.hpp"

namespace lotus::tool {

/// Prints the mapping as a table.
void print_mapping(const mapping& m, std::ostream& out);
/// Prints the mapping as CSV with the columns op,function,module,hits,runs,samples,share.
void print_mapping_csv(const mapping& m, std::ostream& out);

/// Shortens a very long function name for a table: keeps its beginning and its end.
std::string shortened(const std::string& name);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MAP_MAPPING_PRINT_HPP
