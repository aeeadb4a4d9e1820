// CSV by RFC 4180.
#ifndef LOTUS_TOOL_BASE_FORMATS_CSV_HPP
#define LOTUS_TOOL_BASE_FORMATS_CSV_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// Spreadsheets calculate a field that begins with = + - @ (also of full width), a tab or a line
/// break; names come from programs, so a formula in one could start a command. Such a text gets an
/// apostrophe before it, by which spreadsheets know a text, and so does one that begins with an
/// apostrophe: a reader gets every text back by taking one away where it is the first character.
std::string csv_guarded(std::string_view text);

/// `text`, guarded, as a field: quoted where it must be (RFC 4180, section 2), quotes doubled.
/// Bytes that are not UTF-8 and control characters become %XX, as in the log, so that a record is a
/// line.
std::string csv_field(std::string_view text);

/// `text` as a field that a database reads back as it is, line breaks too; only bytes that are not
/// UTF-8 become %XX. An empty text is "", which keeps it apart from NULL: nothing.
std::string csv_exact_field(std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FORMATS_CSV_HPP
