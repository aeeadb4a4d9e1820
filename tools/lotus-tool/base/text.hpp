// Converts numbers and strings to text, and compares the ends of texts. The conversions do not
// depend on the locale, and do not allocate memory for each number.
#ifndef LOTUS_TOOL_BASE_TEXT_HPP
#define LOTUS_TOOL_BASE_TEXT_HPP

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

namespace lotus::tool {

inline bool ends_with(std::string_view text, std::string_view end) noexcept {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// Converts the whole text to a number. Returns false if this is not possible.
/// @param base  of a whole number; without it, 10.
template <class Number, class... Base>
bool read_whole(std::string_view text, Number& value, Base... base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  return error == std::errc{} && end == text.data() + text.size();
}
/// The same for a number that is not negative.
template <class Number, class... Base>
bool read_number(std::string_view text, Number& value, Base... base) {
  return read_whole(text, value, base...) && value >= 0;
}

/// Removes the text before the first `mark`, and this mark, from the beginning of `text`; removes
/// all of `text` if it contains no mark. Returns the removed text without the mark.
inline std::string_view take(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

/// Replaces each occurrence of `what` in a text.
std::string replaced(std::string text, std::string_view what, std::string_view with);

/// Returns a number and what it counts, such as "1 run" or "2 runs".
std::string counted(std::uint64_t count, std::string_view one, std::string_view many);

struct as_text {
  std::string_view operator()(std::string_view text) const noexcept { return text; }
};

/// Joins the texts that `text_of` returns for the elements of `all`, as in "a, b and c": with
/// `last` before the last one and `between` before the others. Leaves out empty texts at the
/// beginning.
template <class Range, class Text = as_text>
std::string enumerated(const Range& all, std::string_view last, const Text& text_of = {},
                       std::string_view between = ", ") {
  std::string text;
  auto left = std::size(all);
  for (const auto& one : all) {
    --left;
    if (!text.empty()) text += left == 0 ? last : between;
    text += text_of(one);
  }
  return text;
}

template <class Range, class Text = as_text>
std::string joined(const Range& all, std::string_view between, const Text& text_of = {}) {
  return enumerated(all, between, text_of, between);
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
    // Local variables, because the compiler must assume that copying bytes changes the members.
    const char* const from = padded_.data();
    const std::size_t bytes = bytes_;
    for (std::size_t at = 0; at < bytes; at += 32) std::memcpy(to + at, from + at, 32);
    return to + bytes;
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

/// The texts of the numbers 0 to 999, four bytes each.
struct digit_groups {
  char padded[4000] = {};  ///< "000" to "999"
  /// "0" to "999". The fourth byte is the number of digits.
  char plain[4000] = {};
  constexpr digit_groups() {
    for (std::size_t n = 0; n < 1000; ++n) {
      const char digits[] = {static_cast<char>('0' + n / 100), static_cast<char>('0' + n / 10 % 10),
                             static_cast<char>('0' + n % 10)};
      const std::size_t zeros = n < 10 ? 2 : n < 100 ? 1 : 0;
      for (std::size_t i = 0; i < 3; ++i) padded[4 * n + i] = digits[i];
      for (std::size_t i = zeros; i < 3; ++i) plain[4 * n + i - zeros] = digits[i];
      plain[4 * n + 3] = static_cast<char>(3 - zeros);
    }
  }
};
inline constexpr digit_groups groups;

/// Writes the three digits of a number below 1000, and changes one byte after them.
inline char* put_group(char* to, std::uint64_t group) noexcept {
  std::memcpy(to, groups.padded + 4 * group, 4);
  return to + 3;
}

/// Writes a number in groups of three digits, and changes up to three bytes after it.
inline char* put_groups(char* to, std::uint64_t value) noexcept {
  if (value >= 1000U) return put_group(put_groups(to, value / 1000U), value % 1000U);
  std::memcpy(to, groups.plain + 4 * value, 4);
  return to + groups.plain[4 * value + 3];
}

}  // namespace internal

/// Writes a time given in ns as microseconds with exactly three decimals, at most 24 bytes, and
/// changes one byte after them. Returns the position after the text.
inline char* put_us(char* to, std::int64_t ns) noexcept {
  auto magnitude = static_cast<std::uint64_t>(ns);
  if (ns < 0) {
    *to++ = '-';
    magnitude = 0 - magnitude;
  }
  // Three digits at a time from a table take half of the instructions of two at a time.
  const std::uint64_t us = magnitude / 1000U;
  char* const point = internal::put_groups(to, us);
  *point = '.';
  return internal::put_group(point + 1, magnitude - us * 1000U);
}

/// Appends `text` as a JSON string with quotes. Bytes that are not UTF-8 become %XX.
void append_json_string(std::string& out, std::string_view text);

std::string json_string(std::string_view text);

/// Returns the shortest text that reads back as `value`; "null" for values that JSON cannot
/// represent.
std::string json_number(double value);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TEXT_HPP
