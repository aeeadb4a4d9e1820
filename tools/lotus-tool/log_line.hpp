// One line of a Lotus log: NAME,START,DURATION.
#ifndef LOTUS_TOOL_LOG_LINE_HPP
#define LOTUS_TOOL_LOG_LINE_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lotus::tool {

/// What a line records. `op` is everything that is not one of the four batch records.
enum class record_kind : std::uint8_t { op, preprocessed, wait, consumed, queued };

/// SBatchWait with this duration marks an out-of-order arrival; it is not a wait.
inline constexpr std::int64_t marker_ns = 1000;

/// Longer lines are malformed; it bounds the memory that a file without newlines can take.
inline constexpr std::size_t max_line_bytes = std::size_t{1} << 20U;

/// A parsed line. `name` points into the line that was parsed and is still escaped.
struct log_line {
  std::string_view name;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t batch = -1;  ///< the number behind SBatchX_, -1 for an op
  record_kind kind = record_kind::op;
  bool blanks = false;  ///< a blank stood behind a comma

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

namespace detail {

/// True when all eight bytes of a little-endian word are decimal digits.
/// Both tests are needed: the first finds bytes outside 0x30..0x3f, the second 0x3a..0x3f.
inline bool eight_digits(std::uint64_t word) noexcept {
  return (word & 0xF0F0F0F0F0F0F0F0U) == 0x3030303030303030U &&
         ((word + 0x0606060606060606U) & 0xF0F0F0F0F0F0F0F0U) == 0x3030303030303030U;
}

/// Value of eight ASCII digits, by adding up neighbours three times (a tree instead of a chain).
inline std::uint64_t value_of_eight(std::uint64_t word) noexcept {
  word = (word & 0x0F0F0F0F0F0F0F0FU) * 2561U >> 8U;
  word = (word & 0x00FF00FF00FF00FFU) * 6553601U >> 16U;
  return (word & 0x0000FFFF0000FFFFU) * 42949672960001U >> 32U;
}

/// Reads the decimal digits at `p`. Returns the first byte behind them; `digits` says how many.
/// The value is exact up to 19 digits; with more it means nothing.
inline const char* read_digits(const char* p, const char* end, std::uint64_t& value,
                               std::size_t& digits) noexcept {
  const char* const begin = p;
  std::uint64_t sum = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  while (end - p >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, sizeof word);
    if (!eight_digits(word)) break;
    sum = sum * 100000000U + value_of_eight(word);
    p += 8;
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

/// Tells apart SBatchPreprocessed_i, SBatchWait_i, SBatchConsumed_i and SBatchQueued_i.
/// Called only for names that begin with "SBatch". Returns nullptr, or what is wrong.
const char* classify_batch(log_line& line) noexcept;

/// Tells which of the three parts of a line that could not be read is to blame.
const char* blame(std::string_view text) noexcept;

}  // namespace detail

/// Reads one line, without its line end.
/// Returns nullptr and fills `line`, or says what is wrong with the text. Neither throws nor
/// allocates; reads nothing outside `text`.
inline const char* parse_line(std::string_view text, log_line& line) noexcept {
  const char* const end = text.data() + text.size();
  const char* p = text.data();
  if (text.size() < 5 || *p != 'S') return detail::blame(text);
  const auto* comma = static_cast<const char*>(std::memchr(p, ',', text.size()));
  if (comma == nullptr) return detail::blame(text);
  line.name = {p, static_cast<std::size_t>(comma - p)};
  line.blanks = false;
  std::uint64_t start = 0;
  std::uint64_t duration = 0;
  std::size_t start_digits = 0;
  std::size_t duration_digits = 0;
  for (p = comma + 1; p != end && (*p == ' ' || *p == '\t'); ++p) line.blanks = true;
  p = detail::read_digits(p, end, start, start_digits);
  if (p == end || *p != ',') return detail::blame(text);
  for (++p; p != end && (*p == ' ' || *p == '\t'); ++p) line.blanks = true;
  p = detail::read_digits(p, end, duration, duration_digits);
  // 19 digits always fit 64 bits unsigned, so both can be added before they are judged.
  constexpr std::uint64_t limit = INT64_MAX;
  if (p != end || start_digits - 1 > 18 || duration_digits - 1 > 18 || start > limit ||
      duration > limit - start) {
    return detail::blame(text);
  }
  line.start_ns = static_cast<std::int64_t>(start);
  line.duration_ns = static_cast<std::int64_t>(duration);
  line.kind = record_kind::op;
  line.batch = -1;
  if (line.name.size() >= 6 && std::memcmp(line.name.data(), "SBatch", 6) == 0) {
    return detail::classify_batch(line);
  }
  return nullptr;
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_LINE_HPP
