// One line of the hidden file beside a thread's logs: KIND,NAME,TIME,A,B, what three columns cannot
// hold.
#ifndef LOTUS_TOOL_LOG_SIDE_LINE_HPP
#define LOTUS_TOOL_LOG_SIDE_LINE_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "lotus/folder/hidden_files.hpp"

namespace lotus::tool {

/// What the names of these files begin with; the logs' prefix, "_pid_" and their number follow.
inline constexpr std::string_view side_log_start = lotus::detail::beside_log_start;
inline constexpr std::string_view compact_log_start = lotus::detail::compact_log_start;

enum class side_kind : std::uint8_t {
  stage,         ///< the operation of this name, start and duration is work for batch or item `b`
  stage_number,  ///< the stage of this name and start that follows has number `a`
  piece,  ///< the operation of this name, start and duration is part of asynchronous operation `b`
  counter,     ///< the value `a` at a time
  takes,       ///< item `b` goes into batch `a`
  off_cpu,     ///< up to this time the thread was off the CPU for `a`, waited for a CPU for `b` of
               ///< that
  arguments,   ///< the operation that begins at this time was given what the name says
  aggregated,  ///< so long was the thread in calls that were not recorded, at just this time or
               ///< anywhere since the begin or end of a span before
  range,       ///< a stretch of the thread's time, named by the program; of its name number `b`
  // Bytes `a`, of the operation of this name that began at this time.
  allocated,  ///< in `b` calls
  freed,      ///< likewise
  retained,   ///< of what was allocated, in `b` blocks
  peak,       ///< by which the thread's heap had grown at most
  // Bytes `a` of the process at this time.
  heap,   ///< held, when `b` units of this name had begun
  held,   ///< likewise of what the operation of this name had allocated from unit `b` on
  total,  ///< allocated so far; where `b` is 1 calls
};

/// Whether lines of this kind tell what an operation did to the heap; they stand before its own.
constexpr bool tells_of_operation(side_kind kind) noexcept {
  return kind >= side_kind::allocated && kind <= side_kind::peak;
}

/// A parsed line. `name` points into the line that was parsed and is still escaped.
struct side_line {
  std::string_view name;
  std::int64_t time_ns = 0;  ///< when it began; of off_cpu, when it was noticed
  std::int64_t a = 0;        ///< of stage, piece and range the duration in ns; a number's 64 bits
  std::int64_t b = 0;        ///< -1 where the line has none
  side_kind kind = side_kind::stage;
  bool blanks = false;  ///< as in log_line: a blank stood behind a comma
};

/// Reads the record at `p`, which may be followed by other lines. Returns the first byte behind it
/// and fills `line`; nullptr when there is none. Neither throws nor allocates.
const char* read_record(const char* p, const char* end, side_line& line) noexcept;

/// Reads one line, without its line end. Returns nullptr and fills `line`, or says what is wrong.
const char* parse_line(std::string_view text, side_line& line) noexcept;

/// Appends the line that parse_line() would read, with its end.
void append_text(const side_line& line, std::string& to);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_SIDE_LINE_HPP
