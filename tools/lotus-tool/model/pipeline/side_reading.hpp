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
  name_table names;  ///< the names to which the numbers in `data` refer
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
};

/// Reads the side logs of a run, and from those of its other loaders what they contain about
/// threads off the CPU, because a thread may work for several loaders in turn. Malformed lines are
/// reported to `diagnostics`, those of other loaders' files when their run is read. Throws
/// input_error.
/// @param read  the part of the run to read.
read_side read_side_logs(const run_files& run, const run_processes& processes,
                         const time_window& read, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_SIDE_READING_HPP
