// Defines the kinds of lines in the main and worker logs, and how timelines draw the lines about
// batches. The table `batch_kinds` has a row for each kind of batch record; some values in it come
// from the library's table of record kinds.
#ifndef LOTUS_TOOL_LOG_BATCH_KINDS_HPP
#define LOTUS_TOOL_LOG_BATCH_KINDS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "lotus/format/record_kinds.hpp"

namespace lotus::tool {

/// The kind of a line in a main or worker log. `op` is the kind of all lines that are not about a
/// batch; each of them records a call of an operation.
enum class record_kind : std::uint8_t { op, preprocessed, wait, consumed, queued };

/// Timelines draw an arrow from a batch's preprocessing to its reception by the consumer. This type
/// says whether the arrow begins at a record (`leaves`), ends at it (`arrives`), or neither.
enum class arrow_end : std::uint8_t { none, leaves, arrives };

/// How the lines of one kind of batch record begin, and how they are drawn.
struct batch_kind {
  record_kind kind;
  std::string_view line_prefix;  ///< beginning of the line, before '_' and the batch's number
  std::string_view family;       ///< beginning of the slices' names on a timeline
  char before_number;            ///< character before the batch's number in the name of a slice
  bool instant;                  ///< whether timelines draw a moment, not a slice
  /// Whether the record begins a step of the consumer, which lasts until the consumer's next wait.
  /// The duration in the line of such a record is only a placeholder.
  bool lasts_a_step;
  bool in_original;  ///< whether the original Lotus for PyTorch also draws this kind
  arrow_end arrow;
  int page_number;  ///< number of the kind in the report's timeline; -1: not drawn
};

namespace internal {

using lotus::detail::event_kind;

/// Builds a row of `batch_kinds`. The beginning of the lines comes from the row for `recorded` in
/// the library's table of record kinds, the other values from the arguments.
/// @param family  beginning of the slices' names; empty: use the beginning of the lines.
constexpr batch_kind drawn_as(record_kind kind, event_kind recorded, std::string_view family,
                              char before_number, bool in_original, arrow_end arrow,
                              int page_number) noexcept {
  const lotus::detail::record_kind row = lotus::detail::row_of(recorded);
  const std::string_view start = row.prefix.substr(0, row.prefix.size() - 1);
  return {kind,
          start,
          family.empty() ? start : family,
          before_number,
          row.drawing == lotus::detail::record_drawing::moment,
          row.drawing == lotus::detail::record_drawing::step,
          in_original,
          arrow,
          page_number};
}

}  // namespace internal

inline constexpr batch_kind batch_kinds[] = {
    internal::drawn_as(record_kind::preprocessed, internal::event_kind::batch_preprocessed, "", '_',
                       true, arrow_end::leaves, 0),
    internal::drawn_as(record_kind::wait, internal::event_kind::batch_wait, "", '_', true,
                       arrow_end::none, 1),
    internal::drawn_as(record_kind::consumed, internal::event_kind::batch_consumed, "step", ' ',
                       true, arrow_end::arrives, 2),
    internal::drawn_as(record_kind::queued, internal::event_kind::batch_queued, "", '_', false,
                       arrow_end::none, -1),
};

inline constexpr std::size_t record_kinds = std::size(batch_kinds) + 1;

/// Returns the row of `batch_kinds` for a kind of batch record. `kind` must not be record_kind::op,
/// because the table has no row for lines about operations.
constexpr const batch_kind& batch_kind_of(record_kind kind) noexcept {
  return batch_kinds[static_cast<std::size_t>(kind) - 1];
}

namespace internal {

constexpr bool rows_in_order() noexcept {
  std::size_t number = 0;
  for (const batch_kind& row : batch_kinds) {
    if (static_cast<std::size_t>(row.kind) != ++number) return false;
  }
  return true;
}
static_assert(rows_in_order(), "every kind but op has a row, in the order of record_kind");

/// For each of the library's kinds of records: the kind of line that such a record becomes in a
/// log. The record of a batch that arrived out of order becomes the line of a wait.
inline constexpr auto kinds_of_lines = [] {
  std::array<record_kind, lotus::detail::record_kind_count> kinds{};
  for (const lotus::detail::record_kind& recorded : lotus::detail::record_kinds) {
    for (const batch_kind& row : batch_kinds) {
      if (lotus::detail::is_of_batch(recorded) &&
          recorded.prefix.substr(0, recorded.prefix.size() - 1) == row.line_prefix) {
        kinds[static_cast<std::size_t>(recorded.kind)] = row.kind;
      }
    }
  }
  return kinds;
}();

constexpr bool has_batch_row(const lotus::detail::record_kind& recorded) noexcept {
  return lotus::detail::is_of_batch(recorded) ==
         (kinds_of_lines[static_cast<std::size_t>(recorded.kind)] != record_kind::op);
}
static_assert(lotus::detail::row_checks::all(has_batch_row),
              "every kind of batch record that the library writes has a row in batch_kinds");

}  // namespace internal

/// Returns the kind of the line that the library writes to a main or worker log when it records the
/// event `recorded`; record_kind::op if the event does not belong to a batch.
constexpr record_kind kind_of_line(lotus::detail::event_kind recorded) noexcept {
  const auto number = static_cast<std::size_t>(recorded);
  return number < internal::kinds_of_lines.size() ? internal::kinds_of_lines[number]
                                                  : record_kind::op;
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_BATCH_KINDS_HPP
