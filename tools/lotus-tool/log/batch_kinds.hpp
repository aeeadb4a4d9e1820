// The kinds of a log's records, and what is particular to each: a new kind is a new row here.
#ifndef LOTUS_TOOL_LOG_BATCH_KINDS_HPP
#define LOTUS_TOOL_LOG_BATCH_KINDS_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lotus::tool {

/// What a line records. `op` is everything that is not one of the batch records.
enum class record_kind : std::uint8_t { op, preprocessed, wait, consumed, queued };
inline constexpr std::size_t record_kinds = static_cast<std::size_t>(record_kind::queued) + 1;

/// Which end of the arrow from a batch's making to its use a record is.
enum class arrow_end : std::uint8_t { none, leaves, arrives };

/// How the lines of one kind of batch record begin, and how they are drawn.
struct batch_kind {
  record_kind kind;
  std::string_view line_prefix;  ///< what stands before '_' and the batch's number
  std::string_view family;       ///< what its slices are called
  char before_number;            ///< of the batch, in a slice's name
  bool instant;                  ///< a moment, not a slice
  bool lasts_a_step;             ///< its duration is a placeholder, it lasts to the next wait
  bool in_original;              ///< the original's script draws it too
  arrow_end arrow;
  int page_number;  ///< in the report's timeline; -1: not drawn there
};

inline constexpr batch_kind batch_kinds[] = {
    {record_kind::preprocessed, "SBatchPreprocessed", "SBatchPreprocessed", '_', false, false, true,
     arrow_end::leaves, 0},
    {record_kind::wait, "SBatchWait", "SBatchWait", '_', false, false, true, arrow_end::none, 1},
    {record_kind::consumed, "SBatchConsumed", "step", ' ', false, true, true, arrow_end::arrives,
     2},
    {record_kind::queued, "SBatchQueued", "SBatchQueued", '_', true, false, false, arrow_end::none,
     -1},
};

/// The row of a kind; there is none of record_kind::op.
constexpr const batch_kind& batch_kind_of(record_kind kind) noexcept {
  return batch_kinds[static_cast<std::size_t>(kind) - 1];
}

namespace internal {

constexpr bool rows_in_order() noexcept {
  std::size_t number = 0;
  for (const batch_kind& row : batch_kinds) {
    if (static_cast<std::size_t>(row.kind) != ++number) return false;
  }
  return number + 1 == record_kinds;
}
static_assert(rows_in_order(), "every kind but op has a row, in the order of record_kind");

}  // namespace internal

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_BATCH_KINDS_HPP
