// Splits each work of a recorded pipeline into operations.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PARTS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PARTS_HPP

#include <cstdint>
#include <deque>
#include <vector>

#include "model/run_data.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// Returns the operations of all works, one part for each name; ordered by work, then by name.
/// @param work_of  by span of run_batches::making(): its work, if it has one.
std::deque<recorded_part> parts_of(const run_data& run, const std::vector<optional_work>& work_of);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PARTS_HPP
