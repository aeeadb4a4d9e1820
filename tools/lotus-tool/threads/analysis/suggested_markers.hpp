// Suggests where a program without markers should have its first two.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_SUGGESTED_MARKERS_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_SUGGESTED_MARKERS_HPP

#include <string>
#include <vector>

#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

struct suggested_marker {
  source_place at;     ///< the line with the call, with debug information
  bool after = false;  ///< whether the marker belongs after that line; otherwise before it
  std::string text;
  bool sure = false;
};

/// Returns the markers of the consumer and of the workers: the main thread waits for batches that
/// the threads of another group preprocess. Returns nothing if the samples are not clear, or the
/// program has no debug information there.
std::vector<suggested_marker> suggested_markers(const thread_samples& samples,
                                                const named_stacks& stacks,
                                                const std::vector<thread_activity>& groups);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_SUGGESTED_MARKERS_HPP
