// Formats CSV fields as defined by RFC 4180.
#ifndef LOTUS_TOOL_BASE_FORMATS_CSV_HPP
#define LOTUS_TOOL_BASE_FORMATS_CSV_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// Prevents spreadsheets from evaluating a text as a formula, because a formula in a name from a
/// foreign log could start a command. If the text begins with = + - @ (also in full width), a tab,
/// a line break or an apostrophe, puts an apostrophe before it, which marks a text in spreadsheets.
/// A reader restores every text by removing one leading apostrophe.
std::string csv_guarded(std::string_view text);

/// Returns csv_guarded(text) as a CSV field. If the text contains a comma or a quote, puts the text
/// in quotes and doubles the quotes in it (RFC 4180, section 2). Control characters and bytes that
/// are not UTF-8 become %XX, as in the log, so each record is one line.
std::string csv_field(std::string_view text);

/// Returns `text` as a CSV field that a database reads back unchanged, including line breaks; only
/// bytes that are not UTF-8 become %XX. An empty text is written as "", to distinguish it from
/// NULL, which is an empty field.
std::string csv_exact_field(std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FORMATS_CSV_HPP
