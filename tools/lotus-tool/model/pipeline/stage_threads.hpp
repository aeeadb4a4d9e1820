// Which threads a stage has, and which stages share theirs.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_STAGE_THREADS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_STAGE_THREADS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/identifiers.hpp"

namespace lotus::tool {

/// A stage's span as far as threads go.
struct thread_span {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t self_ns = 0;  ///< without what other stages did within it, on its thread
  optional_file file;
};

struct stage_threads {
  std::size_t slots = 0;
  std::optional<std::size_t> pool;  ///< place in stage_pools::pools
};

struct stage_pools {
  std::vector<stage_threads> stages;
  std::vector<std::size_t> pools;  ///< threads at once of each
};

/// The most of these stretches that overlap, each from its first to its second; those that touch do
/// not.
std::size_t most_at_once(const std::vector<std::pair<std::int64_t, std::int64_t>>& stretches);

/// As measure_stages() tells of slots and pools.
/// @param stages  spans of each.
stage_pools find_pools(const std::vector<std::vector<thread_span>>& stages);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_STAGE_THREADS_HPP
