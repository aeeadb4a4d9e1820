// Operations whose calls may have to wait for each other.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_SHARED_OPERATIONS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_SHARED_OPERATIONS_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "model/run_data.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/served_at_once.hpp"

namespace lotus::tool {

/// An operation with a large part of the work, or the whole of a stage.
struct shared_operation {
  std::string name;   ///< as in pipeline_change::faster
  std::string stage;  ///< likewise, the one that it is in, or is
  bool is_stage = false;
  std::vector<operation_call> calls;  ///< in order of their ends
  served_at_once served;
  double blocked_share = 0;  ///< of its time that it did not wait for a CPU; 1 where not known
};

/// Of one stage: the operations with a quarter of its time or more, at most three. The stage itself
/// where no operation has half of its time, or where only one thread ever worked in it: then
/// nothing at all is known of two.
///
/// What was seen of the reasons why threads were blocked (whose lock, which device) belongs here:
/// it decides served_at_once::plausible without any statistics.
/// @param work_of     by span of run_batches::making(), its work, if it is one.
/// @param stage       as in making_span. @param name  of the stage.
/// @param cpu_known   whether what threads did off the CPU was recorded.
std::vector<shared_operation> shared_operations_of(const run_data& run,
                                                   const std::vector<optional_work>& work_of,
                                                   stage_id stage, const std::string& name,
                                                   bool cpu_known);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_SHARED_OPERATIONS_HPP
