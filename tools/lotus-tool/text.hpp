// Numbers and strings as text, without locales and without allocating for every piece.
#ifndef LOTUS_TOOL_TEXT_HPP
#define LOTUS_TOOL_TEXT_HPP

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace lotus::tool {

/// Copies `text` to `to`; returns the byte behind it. The caller sees to the room.
inline char* put(char* to, std::string_view text) noexcept {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

/// Needs at most 20 bytes.
template <class Integer>
char* put_integer(char* to, Integer value) noexcept {
  return std::to_chars(to, to + 20, value).ptr;
}

/// Nanoseconds as microseconds with three decimals, so exactly. Needs at most 24 bytes.
inline char* put_us(char* to, std::int64_t ns) noexcept {
  auto magnitude = static_cast<std::uint64_t>(ns);
  if (ns < 0) {
    *to++ = '-';
    magnitude = 0 - magnitude;
  }
  to = put_integer(to, magnitude / 1000U);
  const auto rest = static_cast<unsigned>(magnitude % 1000U);
  to[0] = '.';
  to[1] = static_cast<char>('0' + rest / 100U);
  to[2] = static_cast<char>('0' + rest / 10U % 10U);
  to[3] = static_cast<char>('0' + rest % 10U);
  return to + 4;
}

/// Appends `text` as a JSON string with its quotes. Bytes that are not UTF-8 become %XX.
void append_json_string(std::string& out, std::string_view text);

std::string json_string(std::string_view text);

/// The shortest text that reads back as `value`; "null" for what JSON cannot hold.
std::string json_number(double value);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_TEXT_HPP
