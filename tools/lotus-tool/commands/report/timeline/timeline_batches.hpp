// Writes the batch records of one log for the report's timeline.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_TIMELINE_BATCHES_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_TIMELINE_BATCHES_HPP

#include <cstddef>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// Returns, for every log, the batch records that are drawn, in order of time.
std::vector<std::vector<record_number>> batches_by_file(const run_data& run);

/// Writes [[start,duration,kind,index],…]. If there are more than `most` records, neighbors of one
/// kind that begin in the same interval of the run are combined to [start,duration,kind,index of
/// the first, count,sum of durations].
void write_batches(json_writer& json, const run_data& run,
                   const std::vector<record_number>& batches, std::size_t most);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_TIMELINE_BATCHES_HPP
