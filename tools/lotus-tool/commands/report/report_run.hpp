// Writes the data of one run for the report's page.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_REPORT_RUN_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_REPORT_RUN_HPP

#include <cstddef>
#include <string>

#include "base/diagnostics.hpp"
#include "base/formats/json_writer.hpp"
#include "commands/report/timeline/timeline_data.hpp"
#include "curve/measured_runs.hpp"
#include "log/operation_names.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Writes all data that the page shows about one run. Frees the durations of `run`, to save memory.
/// @param first  receives the small part that the first screen shows.
/// @param json   receives everything else.
/// @param run    read with run_parts::durations and operations.
/// @param name   the run's name on the page.
/// @param names  the names of operations in all runs; those of this run are added.
/// @param others  finds other runs of the same program.
/// @param diagnostics  receives what is wrong with traces of accelerators. Everything else was
///                     reported when `run` was read.
void write_run(json_writer& first, json_writer& json, run_data& run, const std::string& name,
               std::size_t skip_batches, name_table& names, const drawn_limits& limits,
               measured_runs& others, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_REPORT_RUN_HPP
