// Text from outside, made fit for JSON and for terminals.
#ifndef LOTUS_TOOL_BASE_PRINTABLE_HPP
#define LOTUS_TOOL_BASE_PRINTABLE_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// `text` as valid UTF-8: bytes that are not are written %XX, as they stand in the log. So two
/// different names stay different, which U+FFFD would not keep.
std::string printable(std::string_view text);

/// `text` for a terminal: as `printable`, and control characters written %XX too, so that a
/// name in a log cannot move the cursor or break a table.
std::string printable_line(std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_PRINTABLE_HPP
