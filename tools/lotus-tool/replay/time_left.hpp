// Says how much of the recorded time of operations and stages a change leaves.
#ifndef LOTUS_TOOL_REPLAY_TIME_LEFT_HPP
#define LOTUS_TOOL_REPLAY_TIME_LEFT_HPP

#include <string>

#include "replay/change.hpp"
#include "replay/recorded/measured_work.hpp"

namespace lotus::tool {

/// What is left of the recorded time of an operation or stage. One type serves both, because the
/// name of a stage is also the name of an operation.
struct time_left {
  double cpu = 1;      ///< factor for the CPU time
  double blocked = 1;  ///< factor for the blocked time
  double waits = 0;    ///< share of the CPU time that becomes blocked time
  bool is_same() const { return cpu == 1 && blocked == 1 && waits == 0; }
};

/// @param cached  whether the work belongs to an epoch for which results are cached.
time_left left_of(const pipeline_change& change, const std::string& name, bool cached);

/// Returns whether a change concerns the time of single operations or stages.
bool changes_parts(const pipeline_change& change);

measured_work with_left(measured_work work, const time_left& left);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_TIME_LEFT_HPP
