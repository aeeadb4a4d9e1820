// How wide the lines of a stream may be, and text in such lines.
#ifndef LOTUS_TOOL_BASE_TERMINAL_LINE_WIDTH_HPP
#define LOTUS_TOOL_BASE_TERMINAL_LINE_WIDTH_HPP

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>

namespace lotus::tool {

/// A stream has no bound until it is given one: main() knows who reads it, and --wide takes the
/// bound away. @param columns  0: none.
void set_line_width(std::ostream& stream, std::size_t columns);
std::size_t line_width(std::ostream& stream);

/// Columns that a UTF-8 text takes on a terminal, if no character is wide.
std::size_t columns_of(std::string_view text);

/// The text with its middle left out where it is wider; "…" stands for that.
std::string without_middle(std::string_view text, std::size_t columns);

/// Text of words in lines of at most `columns` (0: one line), the first behind `first`, the others
/// behind `others`; no line break at the end. A number keeps its unit, and no word is broken, so
/// what is longer than a line stands on one of its own.
std::string in_lines(std::string_view text, std::size_t columns, std::string_view first = "",
                     std::string_view others = "");

/// In lines that fit `stream`, to which it is not yet written.
inline std::string fitted(std::ostream& stream, std::string_view text, std::string_view first = "",
                          std::string_view others = "") {
  return in_lines(text, line_width(stream), first, others);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TERMINAL_LINE_WIDTH_HPP
