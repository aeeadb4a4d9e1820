// Finds which threads a stage has, and which stages share threads.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_STAGE_THREADS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_STAGE_THREADS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/identifiers.hpp"

namespace lotus::tool {

/// The thread and times of a stage's span.
struct thread_span {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t self_ns = 0;  ///< without other stages' spans inside it, on the same thread
  optional_file file;
};

struct stage_threads {
  std::size_t slots = 0;
  std::optional<std::size_t> pool;  ///< index in stage_pools::pools
};

struct stage_pools {
  std::vector<stage_threads> stages;
  std::vector<std::size_t> pools;  ///< number of threads of each pool
};

/// The maximum number of overlapping ranges, each from `first` to `second`; those that only touch
/// do not overlap.
std::size_t most_at_once(const std::vector<std::pair<std::int64_t, std::int64_t>>& stretches);

/// Finds slots and pools by the rules described at measure_stages().
/// @param stages  the spans of each stage.
stage_pools find_pools(const std::vector<std::vector<thread_span>>& stages);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_STAGE_THREADS_HPP
