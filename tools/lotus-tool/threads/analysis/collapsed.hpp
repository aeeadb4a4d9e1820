// Writes sampled stacks in the format of flame-graph tools: one line per stack, with its time.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_COLLAPSED_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_COLLAPSED_HPP

#include <string>
#include <vector>

#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

/// Returns lines such as "worker_loop;running;worker_loop;resize 812": the group of threads, their
/// state, the open calls with the outermost first, and microseconds. The times of a group's lines
/// add up to the time of its threads, except the time in which they waited for a CPU.
std::string collapsed_stacks(const thread_samples& samples, const named_stacks& stacks,
                             const std::vector<thread_activity>& groups);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_COLLAPSED_HPP
