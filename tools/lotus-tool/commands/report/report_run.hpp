// What the report's page holds of one run.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_REPORT_RUN_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_REPORT_RUN_HPP

#include <cstddef>
#include <string>

#include "base/formats/json_writer.hpp"
#include "commands/report/timeline_data.hpp"
#include "log/operation_names.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Writes everything the page shows of one run. `run` gives back its durations on the way.
/// @param first  what stands on the first screen; it is small.
/// @param json   all else.
/// @param text   that `json` appends to.
/// @param run    read with run_parts::durations and operations.
/// @param name   the page's for it.
/// @param names  of all runs' operations, to which those of this one are added.
void write_run(json_writer& first, json_writer& json, std::string& text, run_data& run,
               const std::string& name, std::size_t skip_batches, name_table& names,
               const drawn_limits& limits);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_REPORT_RUN_HPP
