// Reads the start and end time from a line of a log.
#ifndef LOTUS_TOOL_LOG_WINDOW_LINE_TIMES_HPP
#define LOTUS_TOOL_LOG_WINDOW_LINE_TIMES_HPP

#include <cstdint>
#include <optional>
#include <string_view>

namespace lotus::tool {

struct line_times {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  /// Whether the line has an end time. Lines of a log are sorted by end time, so a line that has
  /// only a start time (`false`) cannot be used for a binary search.
  bool in_order = true;
  /// Whether the line's times count when the start and end of the run are determined; false for
  /// lines about time off the CPU.
  bool of_run = true;
};

/// Returns the times of a line, given without line end; nullopt if the line is not a record.
/// @param is_side  whether the line is from a side log.
std::optional<line_times> times_of_line(std::string_view line, bool is_side);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_LINE_TIMES_HPP
