// Makes texts from logs and other inputs safe to write as JSON or to a terminal.
#ifndef LOTUS_TOOL_BASE_PRINTABLE_HPP
#define LOTUS_TOOL_BASE_PRINTABLE_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// Returns `text` as valid UTF-8. Invalid bytes are written as %XX, as in the log, because
/// replacing them by U+FFFD could make different names equal.
std::string printable(std::string_view text);

/// Like printable(), but also writes control characters, and characters that reverse the direction
/// of text, as %XX, so that a name in a log cannot move the cursor of a terminal or break a table.
std::string printable_line(std::string_view text);

/// Returns `text` as one word of a shell's command line, in quotes unless every character is
/// harmless there.
std::string shell_word(std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_PRINTABLE_HPP
