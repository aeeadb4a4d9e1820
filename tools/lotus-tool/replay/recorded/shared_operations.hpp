// Finds operations whose calls may have to wait for each other, for example for a lock.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_SHARED_OPERATIONS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_SHARED_OPERATIONS_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/run_data.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/served_at_once.hpp"

namespace lotus::tool {

/// An operation that takes a large part of a stage's time, or a stage as a whole.
struct shared_operation {
  std::string name;  ///< name of the operation or stage, as in pipeline_change::faster
  /// Name of the stage in which the operation runs; equals `name` for a stage.
  std::string stage;
  bool is_stage = false;
  /// Calls of the operation, sorted by their ends, except those inside another call of the same
  /// operation (recursion). Shared, because a recorded_pipeline may be copied.
  std::shared_ptr<const std::vector<operation_call>> calls;
  double all_ns = 0;  ///< duration of all calls
  call_overlap overlap;
  /// Share (0..1) of the calls' time during which they were blocked, without waits for a CPU; 1 if
  /// CPU time is unknown.
  double blocked_share = 0;
};

/// Returns at most three operations that take at least a quarter of a stage's time. Adds the stage
/// itself in two cases: if no operation takes half of its time, and if only one thread at a time
/// worked in the stage. In the second case, the recording does not show whether two threads would
/// delay each other.
/// @param work_of    for each span of run_batches::preprocessing_spans(): the index of the work to
///   which the span belongs, if any.
/// @param stage      the stage as in preprocessing_span.
/// @param name       the name of the stage.
/// @param cpu_known  whether the threads' time off the CPU was recorded.
std::vector<shared_operation> shared_operations_of(const run_data& run,
                                                   const std::vector<optional_work>& work_of,
                                                   stage_id stage, const std::string& name,
                                                   bool cpu_known);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_SHARED_OPERATIONS_HPP
