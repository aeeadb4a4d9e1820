// One line of a thread's side log: KIND,NAME,TIME,A,B. It contains what the three columns of other
// logs cannot hold.
#ifndef LOTUS_TOOL_LOG_SIDE_LINE_HPP
#define LOTUS_TOOL_LOG_SIDE_LINE_HPP

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

#include "lotus/folder/hidden_files.hpp"
#include "lotus/format/record_kinds.hpp"

namespace lotus::tool {

/// Beginnings of the names of these files; the logs' prefix, "_pid_" and a number follow.
inline constexpr std::string_view side_log_start = lotus::detail::beside_log_start;
inline constexpr std::string_view compact_log_start = lotus::detail::compact_log_start;
inline constexpr std::string_view aggregates_file_start = lotus::detail::aggregates_file_start;

using lotus::detail::event_kind;

/// A parsed line. `name` points into the parsed line and is still escaped. The library's table of
/// record kinds defines the meaning of columns A and B for each kind.
struct side_line {
  /// Value of an empty column.
  static constexpr std::int64_t no_number = -1;

  std::string_view name;
  std::int64_t time_ns = 0;             ///< when it began; for off_cpu, when it was noticed
  std::int64_t columns[2] = {0, 0};     ///< A and B
  event_kind kind = event_kind::stage;  ///< a kind that has side-log lines
  bool blanks = false;                  ///< as in log_line: a space followed a comma

  // Call each only for kinds that have the number.

  /// For kinds with a measured duration.
  std::int64_t duration_ns() const noexcept { return columns[0]; }
  /// For stage and range no_number if the line has none; for stage_number all 64 bits.
  std::int64_t number() const noexcept { return of(lotus::detail::record_quantity::number); }
  std::int64_t value() const noexcept { return of(lotus::detail::record_quantity::value); }
  std::int64_t batch() const noexcept { return of(lotus::detail::record_quantity::batch); }
  std::int64_t item() const noexcept { return of(lotus::detail::record_quantity::item); }
  std::int64_t off_cpu_ns() const noexcept {
    return of(lotus::detail::record_quantity::off_cpu_ns);
  }
  /// no_number if the kernel does not report it.
  std::int64_t run_queue_ns() const noexcept {
    return of(lotus::detail::record_quantity::run_queue_ns);
  }
  std::uint64_t bytes() const noexcept {
    return static_cast<std::uint64_t>(of(lotus::detail::record_quantity::bytes));
  }
  std::uint64_t count() const noexcept {
    return static_cast<std::uint64_t>(of(lotus::detail::record_quantity::count));
  }

  /// Whether it describes a span of its thread that begins at time_ns.
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

/// Reads the record at `p`, which other lines may follow. Returns the position after it and fills
/// `line`; returns nullptr if there is no record. Neither throws nor allocates.
const char* read_record(const char* p, const char* end, side_line& line) noexcept;

/// Reads one line without its line end. Returns nullptr and fills `line`, or says what is wrong.
const char* parse_line(std::string_view text, side_line& line) noexcept;

/// Appends the line that parse_line() would read, with its line end.
void append_text(const side_line& line, std::string& to);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_SIDE_LINE_HPP
