// Reads the side logs of a run.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_SIDE_READING_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_SIDE_READING_HPP

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "log/operation_names.hpp"
#include "log/process_info.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

struct read_side {
  side_data data;
  name_table names;  ///< the names to which the name ids in `data` refer
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
  /// Spans of stages that were not read because only a part of each lies in the time range.
  std::vector<std::pair<file_id, time_span>> left_out;
};

/// Whether a span begins before `ns` and ends after it.
inline bool crosses(const time_span& span, const std::optional<std::int64_t>& ns) noexcept {
  return ns && span.start_ns < *ns && span.end_ns > *ns;
}

/// Reads the side logs of the run. A thread may work for several loaders. Therefore also reads the
/// side logs of the program's other loaders, but uses only their times off the CPU and in
/// aggregated operations. Reports malformed lines in the side logs of this run, but not in those of
/// other loaders, to `diagnostics`. Throws input_error.
/// @param read  the time range of the run to read.
read_side read_side_logs(const run_files& run, const run_processes& processes,
                         const time_window& read, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_SIDE_READING_HPP
