#include "log/side_line.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include "log/log_line.hpp"

namespace lotus::tool {
namespace {

/// What `a` may be.
enum class a_range : std::uint8_t { not_negative, with_sign, all_64_bits };

struct kind_row {
  std::string_view name;
  side_kind kind;
  bool named;  ///< the second column is an operation's name
  a_range range;
  bool lasts;    ///< `a` is added to the time
  bool b_empty;  ///< `b` may be missing
};

constexpr kind_row kinds[] = {
    {"stage", side_kind::stage, true, a_range::not_negative, true, true},
    {"number", side_kind::stage_number, true, a_range::all_64_bits, false, false},
    {"piece", side_kind::piece, true, a_range::not_negative, true, false},
    {"counter", side_kind::counter, true, a_range::with_sign, false, false},
    {"takes", side_kind::takes, false, a_range::not_negative, false, false},
    {"off_cpu", side_kind::off_cpu, false, a_range::not_negative, false, true},
    {"args", side_kind::arguments, true, a_range::not_negative, false, false},
    {"aggregated", side_kind::aggregated, true, a_range::not_negative, true, true},
    {"range", side_kind::range, true, a_range::not_negative, true, true},
    {"allocated", side_kind::allocated, true, a_range::not_negative, false, false},
    {"freed", side_kind::freed, true, a_range::not_negative, false, false},
    {"retained", side_kind::retained, true, a_range::not_negative, false, false},
    {"peak", side_kind::peak, true, a_range::not_negative, false, false},
    {"heap", side_kind::heap, true, a_range::not_negative, false, false},
    {"held", side_kind::held, true, a_range::not_negative, false, false},
    {"total", side_kind::total, true, a_range::not_negative, false, false},
};

enum class number_fault : std::uint8_t { none, no_number, out_of_range };

/// A whole number and nothing behind it.
number_fault take_number(std::string_view field, a_range range, std::int64_t& value) noexcept {
  if (range == a_range::all_64_bits) {
    std::uint64_t bits = 0;
    const char* const behind = field.data() + field.size();
    const auto [at, error] = std::from_chars(field.data(), behind, bits);
    value = static_cast<std::int64_t>(bits);
    if (error == std::errc::result_out_of_range) return number_fault::out_of_range;
    return error == std::errc{} && at == behind ? number_fault::none : number_fault::no_number;
  }
  const bool minus = range == a_range::with_sign && !field.empty() && field.front() == '-';
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

/// Fills `line` from the text of one line, or says what is wrong with it.
const char* take_line(std::string_view text, side_line& line) noexcept {
  constexpr std::size_t columns = 5;
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
  const auto* const row = std::find_if(std::begin(kinds), std::end(kinds),
                                       [&](const kind_row& k) { return k.name == field[0]; });
  if (row == std::end(kinds)) return "the kind is unknown: was it recorded by a newer lotus?";
  line.kind = row->kind;
  line.name = field[1];
  line.b = -1;
  line.blanks = false;
  if (row->named != !line.name.empty()) {
    return row->named ? "the name is empty" : "a name stands where there is none";
  }
  if (row->named && line.name.front() != 'S') return "the name does not begin with S";
  std::int64_t* const to[] = {&line.time_ns, &line.a, &line.b};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string_view number = field[i + 2];
    if (i == 2 && row->b_empty && number.empty()) continue;
    switch (take_number(number, i == 1 ? row->range : a_range::not_negative, *to[i])) {
      case number_fault::none:
        break;
      case number_fault::no_number:
        return "a field is not a whole number";
      case number_fault::out_of_range:
        return "a number is out of range";
    }
  }
  if (row->lasts && line.a > INT64_MAX - line.time_ns) return "START + DURATION is out of range";
  return nullptr;
}

}  // namespace

const char* read_record(const char* p, const char* end, side_line& line) noexcept {
  const char* const line_end = std::find(p, end, '\n');
  const std::string_view text(p, static_cast<std::size_t>(line_end - p));
  return take_line(text, line) == nullptr ? line_end : nullptr;
}

const char* parse_line(std::string_view text, side_line& line) noexcept {
  if (text.size() > max_line_bytes) return "the line is longer than 1 MiB";
  return take_line(text, line);
}

void append_text(const side_line& line, std::string& to) {
  const kind_row& row = *std::find_if(std::begin(kinds), std::end(kinds),
                                      [&](const kind_row& k) { return k.kind == line.kind; });
  to.append(row.name).append(1, ',');
  to.append(line.name).append(1, ',').append(std::to_string(line.time_ns)).append(1, ',');
  if (row.range == a_range::all_64_bits) {
    to += std::to_string(static_cast<std::uint64_t>(line.a));
  } else {
    to += std::to_string(line.a);
  }
  to += ',';
  if (!row.b_empty || line.b >= 0) to += std::to_string(line.b);
  to += '\n';
}

}  // namespace lotus::tool
