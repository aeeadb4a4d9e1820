// Splits the recorded work on each batch or item into operations.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PARTS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PARTS_HPP

#include <cstdint>
#include <deque>
#include <vector>

#include "model/run_data.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// Returns the parts of all elements of recorded_pipeline::works. Each work has one part for each
/// of its operations. The parts are sorted by work, then by the operation's name.
/// @param work_of  for each span of run_batches::preprocessing_spans(): the index of the work to
///   which the span belongs, if any.
std::deque<recorded_part> parts_of(const run_data& run, const std::vector<optional_work>& work_of);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PARTS_HPP
