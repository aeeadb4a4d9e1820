#include "log/side_line.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <system_error>

#include "log/log_line.hpp"

namespace lotus::tool {
namespace {

using lotus::detail::field_type;
using lotus::detail::line_column;
using lotus::detail::record_kind_count;
using kind_row = lotus::detail::record_kind;

/// Properties of one kind of lines in side logs, taken from the library's table of record kinds.
struct line_kind {
  std::string_view name;  ///< first column of the line; empty: the kind has no side-log lines
  bool named = false;     ///< whether the second column is an operation's name
  bool lasts = false;     ///< whether column A is a duration
  field_type type[2] = {field_type::natural, field_type::natural};  ///< types of columns A and B
};

constexpr auto kinds = [] {
  std::array<line_kind, record_kind_count> all{};
  for (const kind_row& row : lotus::detail::record_kinds) {
    if (row.side_begin.empty()) continue;
    line_kind& of = all[static_cast<std::size_t>(row.kind)];
    of.name = row.side_log_name();
    of.named = lotus::detail::has_name(row);
    of.lasts = row.lasts();
    const line_column columns[2] = {line_column::a, line_column::b};
    for (std::size_t i = 0; i < 2; ++i) {
      const lotus::detail::record_field* const field = row.field_in(columns[i]);
      if (field != nullptr) of.type[i] = field->type;
    }
  }
  return all;
}();

enum class number_fault : std::uint8_t { none, no_number, out_of_range };

/// Reads a whole number into `value`. Returns the fault if `field` contains anything else.
number_fault read_number(std::string_view field, field_type type, std::int64_t& value) noexcept {
  if (type == field_type::bits) {
    std::uint64_t bits = 0;
    const char* const end = field.data() + field.size();
    const auto [at, error] = std::from_chars(field.data(), end, bits);
    value = static_cast<std::int64_t>(bits);
    if (error == std::errc::result_out_of_range) return number_fault::out_of_range;
    return error == std::errc{} && at == end ? number_fault::none : number_fault::no_number;
  }
  const bool minus = type == field_type::integer && !field.empty() && field.front() == '-';
  if (minus) field.remove_prefix(1);
  std::uint64_t digits_value = 0;
  std::size_t digits = 0;
  const char* const end = field.data() + field.size();
  if (internal::read_digits(field.data(), end, digits_value, digits) != end || digits == 0) {
    return number_fault::no_number;
  }
  constexpr std::uint64_t limit = INT64_MAX;
  if (digits > 19 || digits_value > limit + (minus ? 1U : 0U)) return number_fault::out_of_range;
  value = static_cast<std::int64_t>(minus ? 0 - digits_value : digits_value);
  return number_fault::none;
}

/// Fills `line` from the text of one line. Returns nullptr, or a description of the error.
const char* read_columns(std::string_view text, side_line& line) noexcept {
  constexpr std::size_t columns = 5;
  constexpr const char* unknown = "the kind is unknown: was it recorded by a newer lotus?";
  std::string_view field[columns];
  for (std::size_t i = 0; i < columns; ++i) {
    const std::size_t comma = text.find(',');
    const bool last = i + 1 == columns;
    if (last != (comma == std::string_view::npos)) {
      return last ? "more than five fields, expected KIND,NAME,TIME,A,B"
                  : "fewer than five fields, expected KIND,NAME,TIME,A,B";
    }
    field[i] = text.substr(0, comma);
    text.remove_prefix(last ? text.size() : comma + 1);
  }
  if (field[0].empty()) return unknown;
  const auto* const row = std::find_if(std::begin(kinds), std::end(kinds),
                                       [&](const line_kind& k) { return k.name == field[0]; });
  if (row == std::end(kinds)) return unknown;
  line.kind = static_cast<event_kind>(row - std::begin(kinds));
  line.name = field[1];
  line.blanks = false;
  if (row->named != !line.name.empty()) {
    return row->named ? "the name is empty" : "an unexpected name";
  }
  if (row->named && line.name.front() != 'S') return "the name does not begin with S";
  std::int64_t* const to[] = {&line.time_ns, &line.columns[0], &line.columns[1]};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string_view number = field[i + 2];
    const field_type type = i == 0 ? field_type::natural : row->type[i - 1];
    if (type == field_type::natural_or_none && number.empty()) {
      *to[i] = side_line::no_number;
      continue;
    }
    switch (read_number(number, type, *to[i])) {
      case number_fault::none:
        break;
      case number_fault::no_number:
        return "a field is not a whole number";
      case number_fault::out_of_range:
        return "a number is out of range";
    }
  }
  if (row->lasts && line.columns[0] > INT64_MAX - line.time_ns)
    return "START + DURATION is out of range";
  return nullptr;
}

}  // namespace

const char* read_record(const char* p, const char* end, side_line& line) noexcept {
  const char* const line_end = std::find(p, end, '\n');
  const std::string_view text(p, static_cast<std::size_t>(line_end - p));
  return read_columns(text, line) == nullptr ? line_end : nullptr;
}

const char* parse_line(std::string_view text, side_line& line) noexcept {
  if (text.size() > max_line_bytes) return "the line is longer than 1 MiB";
  return read_columns(text, line);
}

void append_text(const side_line& line, std::string& to) {
  const line_kind& row = kinds[static_cast<std::size_t>(line.kind)];
  to.append(row.name).append(1, ',');
  to.append(line.name).append(1, ',').append(std::to_string(line.time_ns));
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t number = line.columns[i];
    to += ',';
    switch (row.type[i]) {
      case field_type::natural_or_none:
        if (number >= 0) to += std::to_string(number);
        break;
      case field_type::bits:
        to += std::to_string(static_cast<std::uint64_t>(number));
        break;
      case field_type::natural:
      case field_type::integer:
        to += std::to_string(number);
        break;
    }
  }
  to += '\n';
}

}  // namespace lotus::tool
