// Holds the samples of a group of threads, which are threads that began with the same function.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_GROUP_SAMPLES_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_GROUP_SAMPLES_HPP

#include <cstdint>
#include <set>
#include <vector>

#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

struct group_samples {
  thread_activity of;
  std::uint64_t waits = 0;
  std::uint64_t span_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t queue_ns = 0;
  std::set<std::uint32_t> processes;
  std::vector<const thread_sample*> running;
  std::vector<const thread_sample*> waiting;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_GROUP_SAMPLES_HPP
