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

/// A text that is copied very often. Its memory is padded to a multiple of 32 bytes, so that put()
/// copies blocks of 32 bytes. Compilers inline these copies, because their size is constant.
class copied_text {
 public:
  void assign(std::string_view text) {
    bytes_ = text.size();
    padded_.assign(text);
    padded_.resize((bytes_ + 31U) & ~std::size_t{31});
  }
  std::string_view text() const noexcept { return {padded_.data(), bytes_}; }
  bool empty() const noexcept { return bytes_ == 0; }

  /// Writes the text to `to`, which must have space for 31 more bytes. Returns the position after
  /// the text.
  char* put(char* to) const noexcept {
    for (std::size_t at = 0; at < bytes_; at += 32) std::memcpy(to + at, padded_.data() + at, 32);
    return to + bytes_;
  }

 private:
  std::string padded_;
  std::size_t bytes_ = 0;
};

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

/// Returns the number of decimal digits of `value`.
inline unsigned count_digits(std::uint64_t value) noexcept {
  constexpr std::uint64_t powers[] = {1U,
                                      10U,
                                      100U,
                                      1000U,
                                      10000U,
                                      100000U,
                                      1000000U,
                                      10000000U,
                                      100000000U,
                                      1000000000U,
                                      10000000000U,
                                      100000000000U,
                                      1000000000000U,
                                      10000000000000U,
                                      100000000000000U,
                                      1000000000000000U,
                                      10000000000000000U,
                                      100000000000000000U,
                                      1000000000000000000U,
                                      10000000000000000000U};
  value |= 1U;  // the number 0 has one digit too
  // The number of bits times log10(2), which is about 1233 / 4096, is the number of digits or one
  // less (Warren, Hacker's Delight, 11-4).
  const auto digits = (64U - static_cast<unsigned>(__builtin_clzll(value))) * 1233U >> 12U;
  return digits + static_cast<unsigned>(value >= powers[digits]);
}

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
  char* const point = to + count_digits(us);
  char* p = point;
  while (us >= 100U) {
    p -= 2;
    std::memcpy(p, internal::pairs.text + 2 * (us % 100U), 2);
    us /= 100U;
  }
  if (us >= 10U) {
    std::memcpy(to, internal::pairs.text + 2 * us, 2);
  } else {
    *to = static_cast<char>('0' + us);
  }
  point[0] = '.';
  point[1] = static_cast<char>('0' + rest / 100U);
  std::memcpy(point + 2, internal::pairs.text + 2 * (rest % 100U), 2);
  return point + 4;
}

/// Appends `text` as a JSON string with quotes. Bytes that are not UTF-8 become %XX.
void append_json_string(std::string& out, std::string_view text);

std::string json_string(std::string_view text);

/// Returns the shortest text that reads back as `value`; "null" for values that JSON cannot
/// represent.
std::string json_number(double value);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TEXT_HPP
