// Stores the last lines of one log, in the order in which they were written.
#ifndef LOTUS_TOOL_COMMANDS_TOP_LINE_WINDOW_HPP
#define LOTUS_TOOL_COMMANDS_TOP_LINE_WINDOW_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace lotus::tool {

/// Returns the end time of the last record in `lines`, which must be complete lines. Returns
/// nullopt if none of the last lines is a record.
/// @param is_side_log  whether the lines are from a side log, which has a different format.
std::optional<std::int64_t> last_end(std::string_view lines, bool is_side_log);

/// Returns the offset of the first line whose record ended at `begin_ns` or later; the size of
/// `lines` if there is none. The lines must be complete and sorted by their end times.
std::size_t first_since(std::string_view lines, std::int64_t begin_ns, bool is_side_log);

/// Stores the lines of one log whose records ended after a certain time, and drops older lines.
class line_window {
 public:
  explicit line_window(bool is_side_log) : is_side_log_(is_side_log) {}

  /// Appends lines.
  /// @param lines  complete lines, including their line ends.
  void add(std::string lines);

  /// Drops the lines whose records ended before `begin_ns`.
  void trim(std::int64_t begin_ns);

  std::string text() const;
  std::size_t bytes() const noexcept { return bytes_; }
  /// Returns the latest end time of all lines that were ever added; nullopt if there were none.
  std::optional<std::int64_t> last_ns() const noexcept { return last_ns_; }

 private:
  std::deque<std::string> parts_;  // the texts passed to add(), in this order
  std::size_t gone_ = 0;  // number of bytes at the front of the first text that were dropped
  std::size_t bytes_ = 0;
  std::optional<std::int64_t> last_ns_;
  bool is_side_log_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LINE_WINDOW_HPP
