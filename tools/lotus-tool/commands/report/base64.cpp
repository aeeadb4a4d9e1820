#include "commands/report/base64.hpp"

namespace lotus::tool {

void append_base64(std::string& to, std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::size_t i = 0;
  const auto byte = [&bytes](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  for (; i + 3 <= bytes.size(); i += 3) {
    const unsigned word = unsigned{byte(i)} << 16U | unsigned{byte(i + 1)} << 8U | byte(i + 2);
    const char four[] = {digits[word >> 18U], digits[word >> 12U & 63U], digits[word >> 6U & 63U],
                         digits[word & 63U]};
    to.append(four, sizeof four);
  }
  if (i == bytes.size()) return;
  const bool two = i + 2 == bytes.size();
  const unsigned word = unsigned{byte(i)} << 16U | (two ? unsigned{byte(i + 1)} << 8U : 0U);
  to += digits[word >> 18U];
  to += digits[word >> 12U & 63U];
  to += two ? digits[word >> 6U & 63U] : '=';
  to += '=';
}

std::string base64(std::string_view bytes) {
  std::string text;
  append_base64(text, bytes);
  return text;
}

}  // namespace lotus::tool
