// Prints what diagnose shows only with --details.
#ifndef LOTUS_TOOL_COMMANDS_DIAGNOSE_DETAILS_HPP
#define LOTUS_TOOL_COMMANDS_DIAGNOSE_DETAILS_HPP

#include <iosfwd>
#include <vector>

#include "findings/diagnosis.hpp"
#include "findings/screen/first_screen.hpp"

namespace lotus::tool {

/// Prints everything that the first screen omits.
/// @param shown  the suggestions on the first screen.
void print_details(const diagnosis& d, const std::vector<shown_advice>& shown, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_DIAGNOSE_DETAILS_HPP
