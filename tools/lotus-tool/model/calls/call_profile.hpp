// Profiles operations as function call profilers do: which one called which, and for how long.
#ifndef LOTUS_TOOL_MODEL_CALLS_CALL_PROFILE_HPP
#define LOTUS_TOOL_MODEL_CALLS_CALL_PROFILE_HPP

#include <cstdint>
#include <map>
#include <vector>

#include "base/index.hpp"
#include "model/calls/call_stack.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

struct call_times {
  std::uint64_t calls = 0;
  /// The part of `calls` that is not inside another call of the same operation.
  std::uint64_t primitive = 0;
  std::int64_t self_ns = 0;   ///< without the calls inside
  std::int64_t total_ns = 0;  ///< of primitive calls, including the calls inside
};

struct called_operation {
  call_times all;
  std::map<optional_index<std::uint32_t>, call_times> by_caller;  ///< by number of the name
};

/// By number of the name. Callers are determined by call_stack.
/// @param run  read with run_parts::operations.
std::vector<called_operation> profile_calls(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CALLS_CALL_PROFILE_HPP
