// Sums up the operations that the timeline does not draw because they are too many, so that the
// page's panels can still show exact sums.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_UNDRAWN_SUMS_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_UNDRAWN_SUMS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "commands/report/longest_drawn.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Divides the time of each log into cells, for which the durations of operations are summed.
/// Returns the sorted edges of the cells. The edges are the times when the thread began or finished
/// a batch, because the panel of a batch shows sums for exactly that time. A thread without batches
/// gets evenly spaced edges.
/// @param most  maximum number of cells for all logs together.
std::vector<std::vector<std::int64_t>> cells_by_file(const run_data& run, std::size_t most);

/// Appends the sums of operations that are not drawn, for each cell in which such operations begin.
/// All numbers are in LEB128, in base64. A cell consists of its start minus the end of the previous
/// written cell (zigzag), its length, and the number of names. For each name follow the name's
/// number, the number of operations, and the sum and maximum of their durations.
/// @param edges    the edges of the log's cells, from cells_by_file().
/// @param name_of  maps a name's number in the run to its number on the page.
void append_undrawn_sums(std::string& text, const run_data& run, std::size_t file,
                         const std::vector<std::int64_t>& edges,
                         const std::vector<std::uint32_t>& name_of, drawn_durations drawn);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_UNDRAWN_SUMS_HPP
