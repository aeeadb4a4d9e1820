// Patterns in the consumer's waits, which show how a program asks for its batches.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_WAIT_PATTERNS_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_WAIT_PATTERNS_HPP

#include <cstddef>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

struct time_span;

/// Waits at which a window of batches begins, because these are begun only when the consumer has
/// received all batches before.
struct window_waits {
  std::size_t every = 0;  ///< number of batches in a window; 0: there are no windows
  double mean_ns = 0;     ///< mean of the waits for the batches that are received first in a window
  double share = 0;       ///< share (0..1) of these waits in the time of all
};

/// Waits that last as long as others, whenever the batch becomes ready meanwhile.
struct fixed_waits {
  std::size_t count = 0;  ///< 0: there are none
  double each_ns = 0;     ///< median
  double share = 0;       ///< share (0..1) of these waits in the time for which batches were ready
};

struct wait_patterns {
  window_waits windows;
  /// Like `windows`, but only by the lengths of the waits, whenever batches are begun.
  window_waits regular;
  fixed_waits fixed;
  /// If batches are built one at a time, and each is begun when the consumer asks for it: share
  /// (0..1) of the steps' time in which none was being built. Else 0.
  double idle_steps = 0;
};

/// @param counted   for each index in run_batches::all(): whether to include the batch.
/// @param building  when at least one batch was being built: disjoint, sorted by time.
wait_patterns find_patterns(const run_data& run, const std::vector<bool>& counted,
                            const std::vector<time_span>& building);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_WAIT_PATTERNS_HPP
