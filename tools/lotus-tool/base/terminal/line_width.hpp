// Limits the width of a stream's lines and fits text into such lines.
#ifndef LOTUS_TOOL_BASE_TERMINAL_LINE_WIDTH_HPP
#define LOTUS_TOOL_BASE_TERMINAL_LINE_WIDTH_HPP

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>

namespace lotus::tool {

/// Sets the width of a stream's lines, which is unlimited by default. main() sets it, because it
/// knows whether the stream is a terminal; --wide removes the limit. @param columns  0: unlimited.
void set_line_width(std::ostream& stream, std::size_t columns);
std::size_t line_width(std::ostream& stream);

/// Number of columns of a UTF-8 text on a terminal, if it contains no wide characters.
std::size_t columns_of(std::string_view text);

/// The text; if it is too wide, "…" replaces its middle.
std::string without_middle(std::string_view text, std::size_t columns);

/// Breaks a text into lines of at most `columns` (0: one line). `first` precedes the first line and
/// `others` the following ones; there is no line break at the end. A number stays on one line with
/// its unit, and no word is broken, so a word that is longer than a line gets a line of its own.
std::string in_lines(std::string_view text, std::size_t columns, std::string_view first = "",
                     std::string_view others = "");

/// Breaks a text into lines that fit `stream`; does not write it.
inline std::string fitted(std::ostream& stream, std::string_view text, std::string_view first = "",
                          std::string_view others = "") {
  return in_lines(text, line_width(stream), first, others);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TERMINAL_LINE_WIDTH_HPP
