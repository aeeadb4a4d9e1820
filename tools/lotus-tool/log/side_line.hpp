// Parses and formats one line of a thread's side log: KIND,NAME,TIME,A,B. Side logs hold the
// records that do not fit into the three columns of the main and worker logs.
#ifndef LOTUS_TOOL_LOG_SIDE_LINE_HPP
#define LOTUS_TOOL_LOG_SIDE_LINE_HPP

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

#include "lotus/folder/hidden_files.hpp"
#include "lotus/format/record_kinds.hpp"

namespace lotus::tool {

/// How the names of hidden files in a run directory begin: side logs, compact logs, and files about
/// aggregated operations. The logs' prefix, "_pid_" and a number follow.
inline constexpr std::string_view side_log_start = lotus::detail::side_log_start;
inline constexpr std::string_view compact_log_start = lotus::detail::compact_log_start;
inline constexpr std::string_view aggregates_file_start = lotus::detail::aggregates_file_start;

using lotus::detail::event_kind;

/// A parsed line. `name` points into the text of the line and may contain escapes (decode_name()).
/// The library's table of record kinds defines the meaning of columns A and B for each kind.
struct side_line {
  /// The value of an empty column.
  static constexpr std::int64_t no_number = -1;

  std::string_view name;
  /// Start of the span or event, in ns since 1970; for off_cpu, the end of the time off the CPU.
  std::int64_t time_ns = 0;
  std::int64_t columns[2] = {0, 0};  ///< numbers in columns A and B
  event_kind kind = event_kind::stage;
  bool blanks = false;  ///< whether the line has a space after a comma

  // Each of the following functions returns one number of the line. Call it only if lines of this
  // kind contain that number.

  /// Returns the duration in ns. Call it only for lines of a kind that has a measured duration.
  std::int64_t duration_ns() const noexcept { return columns[0]; }
  /// Returns the number of a stage or range; no_number if the line has none. In lines of the kind
  /// stage_number, this is an unsigned 64-bit number.
  std::int64_t number() const noexcept { return of(lotus::detail::record_quantity::number); }
  std::int64_t value() const noexcept { return of(lotus::detail::record_quantity::value); }
  std::int64_t batch() const noexcept { return of(lotus::detail::record_quantity::batch); }
  std::int64_t item() const noexcept { return of(lotus::detail::record_quantity::item); }
  std::int64_t off_cpu_ns() const noexcept {
    return of(lotus::detail::record_quantity::off_cpu_ns);
  }
  /// Returns the time in the run queue in ns; no_number if the kernel did not report the time.
  std::int64_t run_queue_ns() const noexcept {
    return of(lotus::detail::record_quantity::run_queue_ns);
  }
  std::uint64_t bytes() const noexcept {
    return static_cast<std::uint64_t>(of(lotus::detail::record_quantity::bytes));
  }
  std::uint64_t count() const noexcept {
    return static_cast<std::uint64_t>(of(lotus::detail::record_quantity::count));
  }

  /// Whether the line describes a span of its thread; time_ns is then the start of the span.
  /// Returns false, for example, for events that have no duration.
  bool is_span() const noexcept {
    return lotus::detail::kind_of(kind).drawing == lotus::detail::record_drawing::span;
  }
  std::int64_t end_ns() const noexcept { return time_ns + (is_span() ? duration_ns() : 0); }

 private:
  std::int64_t of(lotus::detail::record_quantity what) const noexcept {
    using lotus::detail::line_column;
    const lotus::detail::record_kind& row = lotus::detail::kind_of(kind);
    const lotus::detail::record_field* const b = row.field_in(line_column::b);
    if (b != nullptr && b->quantity == what) return columns[1];
    assert(row.field_in(line_column::a) != nullptr &&
           row.field_in(line_column::a)->quantity == what);
    return columns[0];
  }
};

/// Reads the record at `p`, after which other lines may follow. Fills `line` and returns the
/// position after the record; returns nullptr if there is no record. Neither throws nor allocates.
const char* read_record(const char* p, const char* end, side_line& line) noexcept;

/// Reads one line without its line end. Fills `line` and returns nullptr, or returns the error.
const char* parse_line(std::string_view text, side_line& line) noexcept;

/// Appends the line to `to` as text with a line end; parse_line() reads this text.
void append_text(const side_line& line, std::string& to);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_SIDE_LINE_HPP
