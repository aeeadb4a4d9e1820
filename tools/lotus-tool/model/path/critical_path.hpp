// Finds the critical path of a run.
#ifndef LOTUS_TOOL_MODEL_PATH_CRITICAL_PATH_HPP
#define LOTUS_TOOL_MODEL_PATH_CRITICAL_PATH_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/pipeline/off_cpu.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

enum class path_kind : std::uint8_t {
  operation,   ///< while a batch is built
  stage,       ///< work of a stage outside its operations
  step,        ///< work of the consumer
  hand_over,   ///< passing data from one thread to the next
  prefetch,    ///< no more batches were allowed in flight
  start_up,    ///< before the first batch was begun
  unrecorded,  ///< while a batch is built, or between two, outside operations
};

/// "operation", "hand-over" and so on.
std::string_view path_kind_name(path_kind kind) noexcept;

/// One activity's share of the path.
struct path_share {
  path_kind kind = path_kind::unrecorded;
  std::string name;  ///< of operations and stages, without the leading S; else ""
  std::int64_t ns = 0;
  std::optional<cpu_split> cpu;  ///< missing if unknown, or if it is no thread's time
};

/// The part of the path in the preprocessing of one batch.
struct made_on_path {
  optional_batch batch;  ///< nullopt for an item that no batch took
  std::int64_t ns = 0;
};

struct critical_path {
  std::int64_t run_ns = 0;  ///< sum over all epochs, each from its first work to its last reception
  std::vector<path_share> shares;  ///< largest first; their sum is run_ns
  std::vector<made_on_path> made;  ///< a batch may occur more than once
};

/// Walks each epoch backwards from its last reception. At a reception: if the consumer waited and
/// the batch was not ready when the wait began, continues in the preprocessing of the batch; else
/// at the reception before, with the step in between. In preprocessing: continues back to the
/// span's start. There, depending on what ended at that moment: at what its thread did before; or
/// at the stage before; or, if its output was full, at the thread that took something from it; or
/// at the reception that allowed it to begin; else the rest is start-up. Every nanosecond belongs
/// to one activity.
/// @param run  read with run_parts::operations; of one consumer.
critical_path find_critical_path(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PATH_CRITICAL_PATH_HPP
