// Combines the segments of asynchronous operations. Such an operation can be suspended and continue
// later, perhaps on another thread; each interval in which it runs is a segment.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_ASYNC_OPERATIONS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_ASYNC_OPERATIONS_HPP

#include <cstdint>
#include <vector>

#include "model/pipeline/side_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// One asynchronous operation, from the start of its first segment to the end of its last segment.
struct async_operation {
  std::uint32_t name = 0;  ///< name of the first segment: index in run_data::names
  std::int64_t id = 0;
  std::uint64_t process = 0;
  time_span extent;
  /// Sum of the segments' durations. During the other part of `extent`, the operation was
  /// suspended.
  std::int64_t running_ns = 0;
  std::vector<std::uint32_t> segments;  ///< indices in side_data::segments, in order of start
};

/// Returns the asynchronous operations in order of start.
std::vector<async_operation> async_operations_of(const side_data& side);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_ASYNC_OPERATIONS_HPP
