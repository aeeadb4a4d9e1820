// A mapping as people and tables have it.
#ifndef LOTUS_TOOL_COMMANDS_MAP_MAPPING_PRINT_HPP
#define LOTUS_TOOL_COMMANDS_MAP_MAPPING_PRINT_HPP

#include <ostream>
#include <string>

#include "mapping/mapping.hpp"

namespace lotus::tool {

/// For people.
void print_mapping(const mapping& m, std::ostream& out);
/// op,function,module,hits,runs,samples,share.
void print_mapping_csv(const mapping& m, std::ostream& out);

/// A function's name for a table: of those that take pages the beginning and the end.
std::string shortened(const std::string& name);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MAP_MAPPING_PRINT_HPP
