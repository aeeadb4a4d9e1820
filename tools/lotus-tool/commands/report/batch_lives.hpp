// Writes the histories of batches for the page, which shows that of the selected batch.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_BATCH_LIVES_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_BATCH_LIVES_HPP

#include <cstddef>
#include <string>

#include "base/formats/json_writer.hpp"
#include "log/operation_names.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Writes {"all":count,"lives":base64}. lives: LEB128 numbers for every batch, in order of epoch
/// and index. First its index (zigzag), epoch, 1 + the index of the log that preprocessed all of it
/// (0: unknown or several), 1 + the ns of its preprocessing on the critical path (0: unknown), and
/// whether it arrived out of order. Then its times: dispatched, preprocessing's begin and end,
/// wait's begin and end, received, step's end: each is 0 if unknown, else 1 and its difference
/// (zigzag) to the previous known time; for the first one, to the beginning of the run. Then the
/// number of stage spans on it, and for each 1 + its name's number on the page, 1 + its log, its
/// start (as a time above) and its duration.
/// @param text  the text that `json` appends to.
/// @param path  null if unknown.
/// @param most  maximum number of batches; if there are more, evenly spread ones are written.
/// @param names  the operations of all runs; names of stages are added.
void write_batch_lives(json_writer& json, std::string& text, const run_data& run,
                       const critical_path* path, std::size_t most, name_table& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_BATCH_LIVES_HPP
