// Sums up the cost of each operation, for runs that contain only operations.
#ifndef LOTUS_TOOL_MODEL_CALLS_OPERATION_TOTALS_HPP
#define LOTUS_TOOL_MODEL_CALLS_OPERATION_TOTALS_HPP

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/run_data.hpp"

namespace lotus::tool {

struct operation_total {
  std::string name;  ///< name as in the log, with the S that begins every name there
  std::uint64_t calls = 0;
  std::int64_t self_ns = 0;  ///< total time of the calls without the operations inside them
  std::int64_t max_ns = 0;   ///< duration of the longest call
};

/// The sums over all operations of a run. They do not contain each operation, because there may be
/// a million.
struct operation_totals {
  std::size_t operations = 0;  ///< number of operations that were called
  std::uint64_t calls = 0;
  double self_ns = 0;
  operation_total largest;  ///< the operation with the most self time

  bool empty() const noexcept { return operations == 0; }
};

/// Sums up the operations of a run, which must be read with run_parts::operations.
operation_totals sum_operations(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CALLS_OPERATION_TOTALS_HPP
