// CSV as defined by RFC 4180.
#ifndef LOTUS_TOOL_BASE_FORMATS_CSV_HPP
#define LOTUS_TOOL_BASE_FORMATS_CSV_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// Spreadsheets evaluate a field that begins with = + - @ (also in full width), a tab or a line
/// break as a formula. Names come from programs, so a formula in a name could start a command. An
/// apostrophe, which marks a text in spreadsheets, is put before such a text and before a text that
/// begins with an apostrophe. A reader restores every text by removing one leading apostrophe.
std::string csv_guarded(std::string_view text);

/// `text`, guarded, as a field: quoted if necessary (RFC 4180, section 2), with quotes doubled.
/// Bytes that are not UTF-8 and control characters become %XX, as in the log, so that each record
/// is one line.
std::string csv_field(std::string_view text);

/// `text` as a field that a database reads back unchanged, including line breaks; only bytes that
/// are not UTF-8 become %XX. An empty text is written as "", to distinguish it from NULL, which is
/// an empty field.
std::string csv_exact_field(std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FORMATS_CSV_HPP
