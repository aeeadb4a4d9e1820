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

/// The thread and the times of one span of a stage.
struct thread_span {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  /// Duration without the spans of other stages that are nested in this span on the same thread.
  std::int64_t self_ns = 0;
  optional_file file;
};

struct stage_threads {
  std::size_t slots = 0;
  /// Index in stage_pools::pools; nullopt for a stage with its own threads.
  std::optional<std::size_t> pool;
};

struct stage_pools {
  std::vector<stage_threads> stages;
  std::vector<std::size_t> pools;  ///< number of threads of each pool
};

/// Returns the maximum number of intervals that overlap at one time. An interval reaches from
/// `first` to `second`. Intervals of which one ends when the other begins do not overlap.
std::size_t max_at_once(const std::vector<std::pair<std::int64_t, std::int64_t>>& intervals);

/// Finds the slots and pools of the stages by the rules described at measure_stages().
/// @param stages  the spans of each stage.
stage_pools find_pools(const std::vector<std::vector<thread_span>>& stages);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_STAGE_THREADS_HPP
