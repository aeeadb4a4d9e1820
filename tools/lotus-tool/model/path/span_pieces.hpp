// Splits the spans in which batches were preprocessed into segments, by operations.
#ifndef LOTUS_TOOL_MODEL_PATH_SPAN_PIECES_HPP
#define LOTUS_TOOL_MODEL_PATH_SPAN_PIECES_HPP

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

/// A segment of one thread's time.
struct span_piece {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::optional<std::uint32_t> name;  ///< index in run_data::names: the innermost operation

  std::int64_t duration_ns() const noexcept { return end_ns - start_ns; }
};

/// Whether spans of run_batches::making() are split: those that have a duration and are not nested
/// in another span of their thread. A nested span is a segment of the outer one.
std::vector<bool> spans_with_pieces(const run_batches& batches);

/// Calls `on_pieces(span, pieces)` for each span that is split; the segments cover it from start to
/// end. Only the operations of a few spans are in memory at a time.
/// @param run  read with run_parts::operations.
void for_each_span(
    const run_data& run,
    const std::function<void(span_number, const std::vector<span_piece>&)>& on_pieces);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PATH_SPAN_PIECES_HPP
