// Prints a mapping as text and as CSV.
#ifndef LOTUS_TOOL_COMMANDS_MAP_MAPPING_PRINT_HPP
#define LOTUS_TOOL_COMMANDS_MAP_MAPPING_PRINT_HPP

#include <ostream>
#include <string>

#include "mapping/mapping.hpp"

namespace lotus::tool {

/// Prints the mapping as text.
void print_mapping(const mapping& m, std::ostream& out);
/// Prints the columns op,function,module,hits,runs,samples,share.
void print_mapping_csv(const mapping& m, std::ostream& out);

/// A function's name for a table: the beginning and the end of a very long one.
std::string shortened(const std::string& name);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MAP_MAPPING_PRINT_HPP
