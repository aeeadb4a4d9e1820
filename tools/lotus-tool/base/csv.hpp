// CSV by RFC 4180.
#ifndef LOTUS_TOOL_BASE_CSV_HPP
#define LOTUS_TOOL_BASE_CSV_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// `text` as a field: quoted where it must be (RFC 4180, section 2), quotes doubled. Bytes that are
/// not UTF-8 and control characters become %XX, as in the log, so that a record is a line.
std::string csv_field(std::string_view text);

/// `text` as a field that a database reads back as it is, line breaks too; only bytes that are not
/// UTF-8 become %XX. An empty text is "", which keeps it apart from NULL: nothing.
std::string csv_exact_field(std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_CSV_HPP
