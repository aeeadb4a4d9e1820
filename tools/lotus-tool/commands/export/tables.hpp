// Converts a run to tables: runs, spans, batches, stages, counters, aggregated,
// blocked_on.
#ifndef LOTUS_TOOL_COMMANDS_EXPORT_TABLES_HPP
#define LOTUS_TOOL_COMMANDS_EXPORT_TABLES_HPP

#include <cstdint>
#include <vector>

#include "base/diagnostics.hpp"
#include "commands/export/row_sink.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Returns the definitions of all tables. docs/guides/sql-and-ranks.md explains their columns.
const std::vector<table_definition>& exported_tables();

/// Appends the rows of one run to all tables. Throws input_error.
/// @param number  the number that identifies the run in all tables.
/// @param run     the run, which must have been read with run_parts::operations and totals.
void write_tables(std::int64_t number, const run_data& run, row_sink& sink,
                  diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_EXPORT_TABLES_HPP
