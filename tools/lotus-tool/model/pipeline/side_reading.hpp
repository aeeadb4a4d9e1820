// Reads the side logs of a run.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_SIDE_READING_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_SIDE_READING_HPP

#include <cstdint>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "log/operation_names.hpp"
#include "log/process_info.hpp"
#include "model/pipeline/side_data.hpp"

namespace lotus::tool {

struct read_side {
  side_data data;
  name_table names;  ///< the names to which the name ids in `data` refer
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
};

/// Reads the side logs of the run. A thread may work for several loaders. Therefore also reads the
/// side logs of the program's other loaders, but uses only their times off the CPU and in
/// aggregated operations. Reports malformed lines in the side logs of this run, but not in those of
/// other loaders, to `diagnostics`. Throws input_error.
/// @param read  the time range of the run to read.
read_side read_side_logs(const run_files& run, const run_processes& processes,
                         const time_window& read, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_SIDE_READING_HPP
