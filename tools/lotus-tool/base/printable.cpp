#include "base/printable.hpp"

#include <algorithm>
#include <cstddef>

namespace lotus::tool {
namespace {

void append_escaped(std::string& out, unsigned char byte) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  out += '%';
  out += hex[byte >> 4U];
  out += hex[byte & 15U];
}

/// Returns the length of the well-formed UTF-8 sequence at the beginning of `text` (Unicode 15,
/// table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF); 0 if there is none.
std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto continues = [&byte](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80U) return 1;
  if (first >= 0xC2U && first <= 0xDFU) return continues(1) ? 2 : 0;
  if (first >= 0xE0U && first <= 0xEFU) {
    const unsigned low = first == 0xE0U ? 0xA0U : 0x80U;
    const unsigned high = first == 0xEDU ? 0x9FU : 0xBFU;
    return byte(1) >= low && byte(1) <= high && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0U && first <= 0xF4U) {
    const unsigned low = first == 0xF0U ? 0x90U : 0x80U;
    const unsigned high = first == 0xF4U ? 0x8FU : 0xBFU;
    return byte(1) >= low && byte(1) <= high && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

/// Whether the character of this UTF-8 sequence changes the order of the characters around it
/// (Unicode's bidirectional controls), or ends a line.
bool rearranges(std::string_view sequence) noexcept {
  if (sequence.size() != 3 || sequence[0] != '\xe2') return false;
  const auto last = static_cast<unsigned char>(sequence[2]);
  if (sequence[1] == '\x80') {
    return last == 0x8EU || last == 0x8FU || (last >= 0xA8U && last <= 0xAEU);
  }
  return sequence[1] == '\x81' && last >= 0xA6U && last <= 0xA9U;
}

std::string printable_where(std::string_view text, bool controls) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    // Escape C1 controls (U+0080..U+009F) too, because some terminals interpret them like the ASCII
    // control characters.
    const bool c1 = n == 2 && first == 0xC2U && static_cast<unsigned char>(text[1]) < 0xA0U;
    const bool obeyed = first < 0x20U || first == 0x7FU || c1 || rearranges(text.substr(0, n));
    if (n == 0 || (!controls && obeyed)) {
      for (std::size_t i = 0; i < std::max<std::size_t>(n, 1); ++i) {
        append_escaped(out, static_cast<unsigned char>(text[i]));
      }
      text.remove_prefix(std::max<std::size_t>(n, 1));
    } else {
      out += text.substr(0, n);
      text.remove_prefix(n);
    }
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  return printable_where(text, true);
}

std::string printable_line(std::string_view text) {
  return printable_where(text, false);
}

std::string shell_word(std::string_view text) {
  const auto harmless = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), harmless)) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + '\'';
}

}  // namespace lotus::tool
