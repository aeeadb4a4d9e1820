// The times of a line.
#ifndef LOTUS_TOOL_LOG_WINDOW_LINE_TIMES_HPP
#define LOTUS_TOOL_LOG_WINDOW_LINE_TIMES_HPP

#include <cstdint>
#include <optional>
#include <string_view>

namespace lotus::tool {

struct line_times {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  /// Lines are sorted by their ends, except for those that describe only a beginning.
  bool in_order = true;
  bool of_run = true;  ///< counts for the run's duration, from its first such time to its last
};

/// Returns nullopt if the line, given without its line end, is not a record.
/// @param beside  the line is from a side log.
std::optional<line_times> times_of_line(std::string_view line, bool beside);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_LINE_TIMES_HPP
