// Writes sampled stacks in the format of pprof, a viewer for profiles.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_PPROF_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_PPROF_HPP

#include <string>
#include <vector>

#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

/// Returns a message Profile of profile.proto; `pprof` reads it once it is compressed with gzip.
/// Each stack has three values: the number of its samples, the time for which threads ran with this
/// stack, and the time for which they waited with it, in ns. The label "group" names the threads;
/// the labels "reason" and "what" show what they waited for.
std::string pprof_of(const thread_samples& samples, const named_stacks& stacks,
                     const std::vector<thread_activity>& groups);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_PPROF_HPP
