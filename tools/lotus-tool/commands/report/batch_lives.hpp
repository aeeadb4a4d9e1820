// The lives of batches, as the page shows the one that is selected.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_BATCH_LIVES_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_BATCH_LIVES_HPP

#include <cstddef>
#include <string>

#include "base/formats/json_writer.hpp"
#include "log/operation_names.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Writes {"all":count,"lives":base64}. lives: LEB128 numbers, for every batch in order of epoch
/// and index its index (zigzag), epoch, place of the log that made all of it plus 1 (0: unknown, or
/// several), nanoseconds of its making on the critical path plus 1 (0: unknown), whether it came
/// out of order; then its moments: given out, begun, ready, wait's begin and end, handed over,
/// step's end: each 0 where it is unknown, else 1 and its distance (zigzag) from the known one
/// before it; the first one's from the run's beginning. Behind them how many stages
/// worked on it, and of each its name on the page plus 1, its log plus 1, its start as a moment,
/// and its duration.
/// @param text  that `json` appends to.
/// @param path  null where it is not known.
/// @param most  of more, evenly many are left out.
/// @param names  of all runs' operations, to which those of stages are added.
void write_batch_lives(json_writer& json, std::string& text, const run_data& run,
                       const critical_path* path, std::size_t most, name_table& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_BATCH_LIVES_HPP
