// Prints a comparison as tables.
#ifndef LOTUS_TOOL_COMMANDS_COMPARE_PRINT_HPP
#define LOTUS_TOOL_COMMANDS_COMPARE_PRINT_HPP

#include <ostream>

#include "comparison/comparison.hpp"

namespace lotus::tool {

void print_comparison_table(const compared_sides& given, const comparison& found,
                            std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_COMPARE_PRINT_HPP
