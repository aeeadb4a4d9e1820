// The path that a run's length is made of.
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
  operation,   ///< of a batch's making
  stage,       ///< what a stage did in none of its operations
  step,        ///< the consumer's
  hand_over,   ///< from one thread to the next
  prefetch,    ///< nothing more might be out
  start_up,    ///< before anything was made
  unrecorded,  ///< in a batch's making, or between two
};

/// "operation", "hand-over" and so on.
std::string_view path_kind_name(path_kind kind) noexcept;

/// All that one thing has of the path.
struct path_share {
  path_kind kind = path_kind::unrecorded;
  std::string name;  ///< of operations and stages, without S; else ""
  std::int64_t ns = 0;
  std::optional<cpu_split> cpu;  ///< missing where it is not known, or no thread's time
};

/// Part of the path that lies in the making of one batch.
struct made_on_path {
  optional_batch batch;  ///< none of an item that no batch took
  std::int64_t ns = 0;
};

struct critical_path {
  std::int64_t run_ns = 0;  ///< of all epochs, each from its first work to its last hand-over
  std::vector<path_share> shares;  ///< the largest first; their sum is run_ns
  std::vector<made_on_path> made;  ///< a batch may be there more than once
};

/// Walks each epoch backwards from its last hand-over. At a hand-over: if the consumer waited and
/// the batch was not ready when it began to, on into its making; else to the hand-over before,
/// between which is the step. In a making: back over its pieces to the span's start. There, by what
/// ended at that moment: to what its thread did before; or the stage before; or, where its output
/// was full, to the thread that took something from there; or the hand-over that let it begin; else
/// it is start-up. Every nanosecond has one place.
/// @param run  read with run_parts::operations; of one consumer.
critical_path find_critical_path(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PATH_CRITICAL_PATH_HPP
