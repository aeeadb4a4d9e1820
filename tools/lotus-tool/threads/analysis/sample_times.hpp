// Calculates how much time each sample of a thread stands for, and writes collapsed stacks.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_SAMPLE_TIMES_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_SAMPLE_TIMES_HPP

#include <cstddef>
#include <string>
#include <vector>

#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

/// A sample with the time that it represents. The times of a group's samples add up to the time of
/// its threads, without the time for which they waited for a CPU.
struct timed_sample {
  std::size_t group = 0;  ///< index of the sample's group in the list of groups
  const thread_sample* of = nullptr;
  double time_s = 0;
};

/// Returns the samples of all groups with their times. The result points into `samples`.
std::vector<timed_sample> sample_times(const thread_samples& samples,
                                       const std::vector<thread_activity>& groups);

/// Returns lines such as "worker_loop;running;worker_loop;resize 812": the group of threads, their
/// state, the open calls with the outermost first, and microseconds. The times of a group's lines
/// add up to the time of its threads, except the time in which they waited for a CPU.
std::string collapsed_stacks(const thread_samples& samples, const named_stacks& stacks,
                             const std::vector<thread_activity>& groups);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_SAMPLE_TIMES_HPP
