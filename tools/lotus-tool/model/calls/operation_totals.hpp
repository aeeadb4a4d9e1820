// Sums up the cost of each operation, for runs that contain only operations.
#ifndef LOTUS_TOOL_MODEL_CALLS_OPERATION_TOTALS_HPP
#define LOTUS_TOOL_MODEL_CALLS_OPERATION_TOTALS_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

struct operation_total {
  std::string name;  ///< name as in the log, with the S that begins every name there
  std::uint64_t calls = 0;
  std::int64_t self_ns = 0;  ///< total time of the calls without the operations inside them
  std::int64_t max_ns = 0;   ///< duration of the longest call
};

/// Returns the operations, sorted by descending self time. `run` must be read with
/// run_parts::operations.
std::vector<operation_total> operation_totals(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CALLS_OPERATION_TOTALS_HPP
