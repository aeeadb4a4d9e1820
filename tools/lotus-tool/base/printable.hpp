// Makes external text safe for JSON and terminals.
#ifndef LOTUS_TOOL_BASE_PRINTABLE_HPP
#define LOTUS_TOOL_BASE_PRINTABLE_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// `text` as valid UTF-8: invalid bytes are written as %XX, as in the log. So two different names
/// stay different, unlike with U+FFFD.
std::string printable(std::string_view text);

/// `text` for a terminal: like printable(), and control characters are written as %XX too, so that
/// a name in a log cannot move the cursor or break a table.
std::string printable_line(std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_PRINTABLE_HPP
