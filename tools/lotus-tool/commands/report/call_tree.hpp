// Writes which operation called which, for the icicle chart of the report.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_CALL_TREE_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_CALL_TREE_HPP

#include <cstdint>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Writes [[caller, name, ns, count], …] for all threads together. The caller of an operation is
/// the operation that was open when it began, given as the index of an earlier entry; -1 for none.
/// Calls that are nested deeper than the timeline can draw are left out.
/// @param name_of  maps a name's number in the run to its number on the page.
void write_call_tree(json_writer& json, const run_data& run,
                     const std::vector<std::uint32_t>& name_of);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_CALL_TREE_HPP
