// Writes sampled stacks as a profile of pprof.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_PPROF_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_PPROF_HPP

#include <string>
#include <vector>

#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

/// Returns a profile that `pprof` reads once it is compressed with gzip: a message Profile of
/// profile.proto. Each sample has three values: their number, and the time for which threads ran or
/// waited with this stack, in ns. The label "group" names the threads; "reason" and "what" say what
/// they waited for.
std::string pprof_of(const thread_samples& samples, const named_stacks& stacks,
                     const std::vector<thread_activity>& groups);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_PPROF_HPP
