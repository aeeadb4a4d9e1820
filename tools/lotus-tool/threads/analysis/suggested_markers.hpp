// Suggests the lines at which a user should add the first markers (Lotus macros) to a program.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_SUGGESTED_MARKERS_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_SUGGESTED_MARKERS_HPP

#include <cstdint>
#include <vector>

#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

struct suggested_marker {
  enum class kind : std::uint8_t { begin_wait, begin_batch, end_wait, end_batch };
  source_place at;  ///< the line with the call, from the debug information
  kind is = kind::begin_wait;
  bool sure = false;
  bool is_c = false;  ///< whether the program is one in C, in which C++ does not compile

  /// Returns whether the marker belongs after the line; otherwise it belongs before it.
  bool is_after() const noexcept { return is >= kind::end_wait; }
  /// Returns the line of code, in which i stands for the batch's number.
  const char* text() const noexcept;
  /// Returns the header that the file must include.
  const char* header() const noexcept { return is_c ? "lotus/lotus.h" : "lotus/lotus.hpp"; }
};

/// Returns markers for the consumer and for the workers, if the main thread waits for batches that
/// the threads of another group preprocess. Returns nothing if the samples do not show this, or if
/// the program has no debug information for these lines.
std::vector<suggested_marker> suggested_markers(const thread_samples& samples,
                                                const named_stacks& stacks,
                                                const std::vector<thread_activity>& groups);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_SUGGESTED_MARKERS_HPP
