// Assembles asynchronous operations, which pause and continue, perhaps on another thread.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_ASYNC_OPERATIONS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_ASYNC_OPERATIONS_HPP

#include <cstdint>
#include <vector>

#include "model/pipeline/side_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// One asynchronous operation: from the start of its first segment to the end of its last.
struct async_operation {
  std::uint32_t name = 0;  ///< index in run_data::names, from its first segment
  std::int64_t id = 0;
  std::uint64_t process = 0;
  time_span life;
  std::int64_t running_ns = 0;        ///< the sum of its segments; it was suspended in the rest
  std::vector<std::uint32_t> pieces;  ///< indices in side_data::pieces, in order of start
};

/// In order of start.
std::vector<async_operation> async_operations_of(const side_data& side);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_ASYNC_OPERATIONS_HPP
