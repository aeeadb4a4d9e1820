#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/printable.hpp"

namespace lotus::tool {

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  out += '"';
  const auto plain = [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), plain)) {  // fast path for nearly every name
    out += text;
    out += '"';
    return;
  }
  const std::string valid = printable(text);
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const char c = valid[i];
    auto byte = static_cast<unsigned char>(c);
    // C1 control characters (U+0080 to U+009F): some terminals obey them.
    const bool c1 = byte == 0xC2U && static_cast<unsigned char>(valid[i + 1]) < 0xA0U;
    if (c1) byte = static_cast<unsigned char>(valid[++i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c1 || byte < 0x20U || byte == 0x7FU) {
      out += "\\u00";
      out += hex[byte >> 4U];
      out += hex[byte & 15U];
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return std::to_string(count).append(" ").append(count == 1 ? one : many);
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 32> digits{};
  auto* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

}  // namespace lotus::tool
