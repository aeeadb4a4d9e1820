// Operations that pause and go on, perhaps on another thread.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_ASYNC_OPERATIONS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_ASYNC_OPERATIONS_HPP

#include <cstdint>
#include <vector>

#include "model/pipeline/side_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// One asynchronous operation: from its first piece's start to its last one's end.
struct async_operation {
  std::uint32_t name = 0;  ///< of run_data::names, of its first piece
  std::int64_t id = 0;
  std::uint64_t process = 0;
  time_span life;
  std::int64_t running_ns = 0;        ///< the sum of its pieces; the rest it was suspended
  std::vector<std::uint32_t> pieces;  ///< places in side_data::pieces, in order of start
};

/// In order of start.
std::vector<async_operation> async_operations_of(const side_data& side);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_ASYNC_OPERATIONS_HPP
