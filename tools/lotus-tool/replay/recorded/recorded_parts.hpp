// What each work of a recorded pipeline was made of.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PARTS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PARTS_HPP

#include <cstdint>
#include <deque>
#include <vector>

#include "model/run_data.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

inline constexpr std::uint32_t no_work = UINT32_MAX;

/// The operations of all works, a part for each name; in order of the works, then of the names.
/// @param work_of  by span of run_batches::making(), its place in recorded_pipeline::works; no_work
///                 where it is none.
std::deque<recorded_part> parts_of(const run_data& run, const std::vector<std::uint32_t>& work_of);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PARTS_HPP
