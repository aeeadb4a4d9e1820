// Profiles operations as if they were functions: if operation B ran inside operation A, A called B.
// Counts how often each operation called another, and how long these calls took.
#ifndef LOTUS_TOOL_MODEL_CALLS_CALL_PROFILE_HPP
#define LOTUS_TOOL_MODEL_CALLS_CALL_PROFILE_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "model/calls/call_stack.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

struct call_times {
  std::uint64_t calls = 0;
  /// The number of calls that are not inside another call of the same operation.
  std::uint64_t primitive = 0;
  std::int64_t self_ns = 0;   ///< total time of all calls, without the calls inside them
  std::int64_t total_ns = 0;  ///< time of the primitive calls, including the calls inside them
};

struct called_operation {
  call_times all;
  /// The calls of this operation by each caller. The key is the id of the caller's name; nullopt
  /// stands for calls without a caller.
  std::map<optional_index<std::uint32_t>, call_times> by_caller;
};

/// Returns the operations of the run, indexed by the id of their name in run_data::names. The class
/// call_stack defines which operation is the caller of another.
/// @param run  a run that was read with run_parts::operations.
std::vector<called_operation> profile_calls(const run_data& run);

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

#endif  // LOTUS_TOOL_MODEL_CALLS_CALL_PROFILE_HPP
