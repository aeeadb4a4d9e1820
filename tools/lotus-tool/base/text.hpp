// Converts numbers and strings to text, and compares the ends of texts. The conversions do not
// depend on the locale, and do not allocate memory for each number.
#ifndef LOTUS_TOOL_BASE_TEXT_HPP
#define LOTUS_TOOL_BASE_TEXT_HPP

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace lotus::tool {

inline bool ends_with(std::string_view text, std::string_view end) noexcept {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// Copies `text` to `to`, which must have enough space. Returns the position after the text.
inline char* put(char* to, std::string_view text) noexcept {
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

/// Writes an integer to `to`, at most 20 bytes; returns the position after it.
template <class Integer>
char* put_integer(char* to, Integer value) noexcept {
  return std::to_chars(to, to + 20, value).ptr;
}

namespace internal {

/// The texts "00" to "99", one after another in an array.
struct digit_pairs {
  char text[200] = {};
  constexpr digit_pairs() {
    for (std::size_t i = 0; i < 100; ++i) {
      text[2 * i] = static_cast<char>('0' + i / 10);
      text[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
  }
};
inline constexpr digit_pairs pairs;

}  // namespace internal

/// Writes a time given in ns as microseconds with exactly three decimals, at most 24 bytes. Returns
/// the position after the text.
inline char* put_us(char* to, std::int64_t ns) noexcept {
  auto magnitude = static_cast<std::uint64_t>(ns);
  if (ns < 0) {
    *to++ = '-';
    magnitude = 0 - magnitude;
  }
  const std::size_t rest = magnitude % 1000U;
  std::uint64_t us = magnitude / 1000U;
  // Writes digits from the last to the first, two at a time, which is faster than std::to_chars.
  char digits[24];
  char* first = digits + sizeof digits;
  while (us >= 100U) {
    first -= 2;
    std::memcpy(first, internal::pairs.text + 2 * (us % 100U), 2);
    us /= 100U;
  }
  if (us >= 10U) {
    first -= 2;
    std::memcpy(first, internal::pairs.text + 2 * us, 2);
  } else {
    *--first = static_cast<char>('0' + us);
  }
  const auto n = static_cast<std::size_t>(digits + sizeof digits - first);
  std::memcpy(to, first, n);
  to += n;
  to[0] = '.';
  to[1] = static_cast<char>('0' + rest / 100U);
  std::memcpy(to + 2, internal::pairs.text + 2 * (rest % 100U), 2);
  return to + 4;
}

/// Appends `text` as a JSON string with quotes. Bytes that are not UTF-8 become %XX.
void append_json_string(std::string& out, std::string_view text);

std::string json_string(std::string_view text);

/// Returns the shortest text that reads back as `value`; "null" for values that JSON cannot
/// represent.
std::string json_number(double value);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TEXT_HPP
