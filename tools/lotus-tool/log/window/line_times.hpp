// From when to when a line tells of.
#ifndef LOTUS_TOOL_LOG_WINDOW_LINE_TIMES_HPP
#define LOTUS_TOOL_LOG_WINDOW_LINE_TIMES_HPP

#include <cstdint>
#include <optional>
#include <string_view>

namespace lotus::tool {

struct line_times {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  /// Lines stand in the order of their ends, but some tell of a beginning only.
  bool in_order = true;
  bool of_run = true;  ///< the run lasts from the first of these to the last one
};

/// None where the line, without its end, is no record.
/// @param beside  it is of a hidden log beside the others.
std::optional<line_times> times_of_line(std::string_view line, bool beside);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_LINE_TIMES_HPP
