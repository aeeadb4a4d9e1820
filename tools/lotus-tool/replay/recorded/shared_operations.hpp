// Finds operations whose calls may have to wait for each other.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_SHARED_OPERATIONS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_SHARED_OPERATIONS_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "model/run_data.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/served_at_once.hpp"

namespace lotus::tool {

/// An operation that takes a large part of a stage's work, or a whole stage.
struct shared_operation {
  std::string name;   ///< as in pipeline_change::faster
  std::string stage;  ///< likewise: the stage that it runs in, or is
  bool is_stage = false;
  std::vector<operation_call> calls;  ///< in order of their ends
  served_at_once served;
  double blocked_share = 0;  ///< blocked part of its time, without waiting for a CPU; 1 if unknown
};

/// Returns the operations of one stage with at least a quarter of its time, at most three. Also the
/// stage itself if no operation has half of its time, or if only one thread at a time ever worked
/// in it: then the recording shows nothing about two.
///
/// If the reasons why threads were blocked (which lock, which device) are recorded one day, they
/// belong here: they would determine served_at_once::plausible without statistics.
/// @param work_of     by span of run_batches::making(): its work, if it has one.
/// @param stage       as in making_span. @param name  of the stage.
/// @param cpu_known   whether the threads' time off the CPU was recorded.
std::vector<shared_operation> shared_operations_of(const run_data& run,
                                                   const std::vector<optional_work>& work_of,
                                                   stage_id stage, const std::string& name,
                                                   bool cpu_known);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_SHARED_OPERATIONS_HPP
