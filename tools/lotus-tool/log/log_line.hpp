// Parses and formats one line of a main or worker log: NAME,START,DURATION.
#ifndef LOTUS_TOOL_LOG_LOG_LINE_HPP
#define LOTUS_TOOL_LOG_LOG_LINE_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "log/batch_kinds.hpp"

namespace lotus::tool {

/// An SBatchWait line with this duration is not a wait: it marks a batch that arrived out of order.
inline constexpr std::int64_t marker_ns = 1000;

/// Maximum length of a line. A limit is necessary because a file may contain no line ends.
inline constexpr std::size_t max_line_bytes = std::size_t{1} << 20U;

/// A parsed line. `name` points into the text of the line and may contain escapes (decode_name()).
struct log_line {
  std::string_view name;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t batch = -1;  ///< batch number in a name such as SBatchWait_7; -1 for an operation
  record_kind kind = record_kind::op;
  bool blanks = false;  ///< whether the line has a space after a comma

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

namespace internal {

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

constexpr std::uint64_t in_each_byte(std::uint64_t byte) {
  return byte * 0x0101010101010101U;
}

inline std::uint64_t load_word(const char* p) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  return word;
}

/// Returns a word whose lowest set bit lies in the first byte of `word` that is less than `limit`
/// (at most 0x80); 0 if no byte is. Higher bits of the result are meaningless (Warren, Hacker's
/// Delight, 6-1).
inline std::uint64_t first_less(std::uint64_t word, unsigned char limit) noexcept {
  return (word - in_each_byte(limit)) & ~word & in_each_byte(0x80);
}

/// Returns a word whose lowest set bit lies in the first byte of `word` that is not a decimal
/// digit; 0 if all are digits. Higher bits of the result are meaningless.
inline std::uint64_t first_not_digit(std::uint64_t word) noexcept {
  const std::uint64_t x = word ^ in_each_byte('0');
  return ((x + in_each_byte(0x76)) | x) & in_each_byte(0x80);
}

/// Returns the value of eight ASCII digits. Combines digits to pairs, pairs to fours and fours to
/// the value, which is faster than digit by digit. A zero byte counts as the digit 0.
inline std::uint64_t value_of_eight(std::uint64_t word) noexcept {
  word = (word & in_each_byte(0x0F)) * 2561U >> 8U;
  word = (word & 0x00FF00FF00FF00FFU) * 6553601U >> 16U;
  return (word & 0x0000FFFF0000FFFFU) * 42949672960001U >> 32U;
}

constexpr std::uint64_t powers_of_ten[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};

/// Returns the value of the first `n` (0 to 7) bytes of a word, which are digits.
inline std::uint64_t value_of_first(std::uint64_t word, unsigned n) noexcept {
  // The shifts move the digits to the end of the word and put zero bytes before them.
  return value_of_eight(word << (8U * (7U - n)) << 8U);
}

#endif

/// Reads the decimal digits at `p`. Returns the position after them, and sets `value` to the number
/// that they form and `digits` to how many they are. The value is exact for up to 19 digits and
/// meaningless for more.
inline const char* read_digits(const char* p, const char* end, std::uint64_t& value,
                               std::size_t& digits) noexcept {
  const char* const begin = p;
  std::uint64_t sum = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  while (end - p >= 8) {
    const std::uint64_t word = load_word(p);
    const std::uint64_t stop = first_not_digit(word);
    if (stop == 0) {
      sum = sum * 100000000U + value_of_eight(word);
      p += 8;
      continue;
    }
    const auto n = static_cast<unsigned>(__builtin_ctzll(stop)) / 8U;
    value = sum * powers_of_ten[n] + value_of_first(word, n);
    digits = static_cast<std::size_t>(p - begin) + n;
    return p + n;
  }
#endif
  while (p != end && *p >= '0' && *p <= '9') {
    sum = sum * 10U + static_cast<std::uint64_t>(*p - '0');
    ++p;
  }
  value = sum;
  digits = static_cast<std::size_t>(p - begin);
  return p;
}

/// Returns the first comma or newline in [p, end); `end` if there is none.
inline const char* find_comma(const char* p, const char* end) noexcept {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  // Few bytes of a name are less than a comma, and a newline is. One comparison finds both.
  while (end - p >= 8) {
    const std::uint64_t found = first_less(load_word(p), ',' + 1);
    if (found == 0) {
      p += 8;
      continue;
    }
    p += __builtin_ctzll(found) / 8;
    if (*p == ',' || *p == '\n') return p;
    ++p;
  }
#endif
  while (p != end && *p != ',' && *p != '\n') ++p;
  return p;
}

inline const char* skip_blanks(const char* p, const char* end, bool& skipped) noexcept {
  for (; p != end && (*p == ' ' || *p == '\t'); ++p) skipped = true;
  return p;
}

/// Sets `line.kind` and `line.batch` if the line's name is that of a batch record, such as
/// SBatchWait_7. Call it only for names that begin with "SBatch". Returns nullptr, or a description
/// of what is wrong with the name.
const char* classify_batch(log_line& line) noexcept;

/// Returns a description of the error in a line that parse_line() could not read.
const char* blame(std::string_view text) noexcept;

/// read_usual_record() reads fewer bytes than this.
inline constexpr std::ptrdiff_t usual_record_room = 96;

/// Reads a record in the form that nearly all have: a name of at most 32 bytes, and a start of 19
/// digits, as all have since 2001. Takes two thirds of the instructions of read_any_record(),
/// because it reads numbers without loops and does not check for the end of the text. Returns the
/// position after the record's digits; nullptr if the record has another form. Sets only the name,
/// start and duration of `line`.
inline const char* read_usual_record(const char* p, log_line& line) noexcept {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  constexpr std::ptrdiff_t max_name = 32;
  const char* const name = p;
  const char* const comma = find_comma(p, p + max_name);
  if (*comma != ',') return nullptr;
  const std::uint64_t start_0 = load_word(comma + 1);
  const std::uint64_t start_8 = load_word(comma + 9);
  const std::uint64_t start_16 = load_word(comma + 17);
  if ((first_not_digit(start_0) | first_not_digit(start_8)) != 0) return nullptr;
  const std::uint64_t start_end = first_not_digit(start_16);
  constexpr unsigned rest = 3;
  if (start_end == 0 || __builtin_ctzll(start_end) / 8 != rest || comma[20] != ',') return nullptr;
  const std::uint64_t start =
      (value_of_eight(start_0) * 100000000U + value_of_eight(start_8)) * powers_of_ten[rest] +
      value_of_first(start_16, rest);
  p = comma + 21;
  std::uint64_t word = load_word(p);
  std::uint64_t end = first_not_digit(word);
  std::uint64_t duration = 0;
  if (end == 0) {
    duration = value_of_eight(word);
    p += 8;
    word = load_word(p);
    end = first_not_digit(word);
    if (end == 0) return nullptr;
  }
  const auto digits = static_cast<unsigned>(__builtin_ctzll(end)) / 8U;
  duration = duration * powers_of_ten[digits] + value_of_first(word, digits);
  p += digits;
  if (p == comma + 21 || start > INT64_MAX - duration) return nullptr;
  line.name = {name, static_cast<std::size_t>(comma - name)};
  line.start_ns = static_cast<std::int64_t>(start);
  line.duration_ns = static_cast<std::int64_t>(duration);
  return p;
#else
  static_cast<void>(line);
  return nullptr;
#endif
}

/// Reads a record in any form, otherwise like read_usual_record().
inline const char* read_any_record(const char* p, const char* end, log_line& line) noexcept {
  const char* const comma = find_comma(p, end);
  if (comma == end || *comma != ',') return nullptr;
  line.name = {p, static_cast<std::size_t>(comma - p)};
  std::uint64_t start = 0;
  std::uint64_t duration = 0;
  std::size_t start_digits = 0;
  std::size_t duration_digits = 0;
  p = skip_blanks(comma + 1, end, line.blanks);
  p = read_digits(p, end, start, start_digits);
  if (p == end || *p != ',') return nullptr;
  p = skip_blanks(p + 1, end, line.blanks);
  p = read_digits(p, end, duration, duration_digits);
  // `start` and `duration` are exact for up to 19 digits, so the condition first checks the numbers
  // of digits. If a number has no digits, its count of digits minus 1 wraps around to a huge
  // number, which fails the check too.
  constexpr std::uint64_t limit = INT64_MAX;
  if (start_digits - 1 > 18 || duration_digits - 1 > 18 || start > limit ||
      duration > limit - start) {
    return nullptr;
  }
  line.start_ns = static_cast<std::int64_t>(start);
  line.duration_ns = static_cast<std::int64_t>(duration);
  return p;
}

}  // namespace internal

/// Reads the record at `p`, after which other lines may follow. Fills `line` and returns the
/// position after the record's digits; returns nullptr if there is no record. Neither throws nor
/// allocates; reads nothing outside [p, end).
inline const char* read_record(const char* p, const char* end, log_line& line) noexcept {
  if (p == end || *p != 'S') return nullptr;
  line.blanks = false;
  line.kind = record_kind::op;
  line.batch = -1;
  const char* const usual =
      end - p >= internal::usual_record_room ? internal::read_usual_record(p, line) : nullptr;
  p = usual != nullptr ? usual : internal::read_any_record(p, end, line);
  if (p != nullptr && line.name.size() >= 6 && std::memcmp(line.name.data(), "SBatch", 6) == 0 &&
      internal::classify_batch(line) != nullptr) {
    return nullptr;
  }
  return p;
}

/// Reads one line without its line end. Fills `line` and returns nullptr, or returns the error.
inline const char* parse_line(std::string_view text, log_line& line) noexcept {
  const char* const end = text.data() + text.size();
  if (text.size() <= max_line_bytes && read_record(text.data(), end, line) == end) return nullptr;
  return internal::blame(text);
}

/// Reads a line whose only fault is a negative duration. If the clock was set back during a span,
/// and the duration is computed as the difference of two times, the duration may be negative.
bool parse_negative_duration(std::string_view text, log_line& line);

/// Appends the line to `to` as text with a line end; parse_line() reads this text.
void append_text(const log_line& line, std::string& to);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_LOG_LINE_HPP
