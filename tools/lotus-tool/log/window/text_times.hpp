// Finds times in a text log.
#ifndef LOTUS_TOOL_LOG_WINDOW_TEXT_TIMES_HPP
#define LOTUS_TOOL_LOG_WINDOW_TEXT_TIMES_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "log/folder/log_files.hpp"
#include "log/window/time_window.hpp"

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

/// Returns a summary of the times in `lines`, which must be complete lines of a text log.
/// @param is_side  whether the lines are from a side log.
seen_times look_at_lines(std::string_view lines, bool is_side);

/// Returns an object that maps times to positions in a text log. Throws input_error if the file
/// cannot be opened.
std::unique_ptr<log_times> times_of_text(const log_file& file);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_TEXT_TIMES_HPP
