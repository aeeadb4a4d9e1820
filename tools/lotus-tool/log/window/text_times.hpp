// Finds times in a text log.
#ifndef LOTUS_TOOL_LOG_WINDOW_TEXT_TIMES_HPP
#define LOTUS_TOOL_LOG_WINDOW_TEXT_TIMES_HPP

#include <memory>
#include <string_view>

#include "log/folder/log_files.hpp"
#include "log/window/log_times.hpp"

namespace lotus::tool {

/// Returns a summary of the times in `lines`, which must be complete lines of a text log.
/// @param is_side  whether the lines are from a side log.
seen_times look_at_lines(std::string_view lines, bool is_side);

/// Returns an object that maps times to positions in a text log. Throws input_error if the file
/// cannot be opened.
std::unique_ptr<log_times> times_of_text(const log_file& file);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_TEXT_TIMES_HPP
