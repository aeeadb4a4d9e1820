// Splits the spans in which batches were preprocessed into segments, one for each operation.
#ifndef LOTUS_TOOL_MODEL_PATH_SPAN_SEGMENTS_HPP
#define LOTUS_TOOL_MODEL_PATH_SPAN_SEGMENTS_HPP

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

/// A part of a span during which the thread's innermost operation did not change: no operation
/// began or ended in it.
struct span_segment {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  /// Index in run_data::names of the innermost operation; nullopt outside operations.
  std::optional<std::uint32_t> name;

  std::int64_t duration_ns() const noexcept { return end_ns - start_ns; }
};

/// Returns, for each span of run_batches::preprocessing_spans(), whether it is split into segments.
/// This is true if it has a duration and is not nested in another span of its thread. Nested spans
/// are not split, because they are segments of the span that contains them.
std::vector<bool> segmented_spans(const run_batches& batches);

/// Calls `on_segments(span, segments)` for each wanted span that is split; the segments cover the
/// span from start to end. The spans of a log come in the order of their starts. Several logs are
/// read at the same time, so `on_segments` is called by several threads. Only the operations of a
/// few spans of each of these logs are in memory at a time.
/// @param run  a run that was read with run_parts::operations.
/// @param wanted  for each span of run_batches::preprocessing_spans(): whether it is wanted.
void for_each_span(
    const run_data& run, const std::vector<bool>& wanted,
    const std::function<void(span_number, const std::vector<span_segment>&)>& on_segments);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PATH_SPAN_SEGMENTS_HPP
