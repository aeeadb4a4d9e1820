#include "findings/words.hpp"

#include <cmath>
#include <cstddef>
#include <iomanip>
#include <sstream>
#include <string>
#include <variant>

#include "base/printable.hpp"
#include "base/terminal/table.hpp"

namespace lotus::tool {

std::string whole_percent(double share) {
  return std::to_string(std::lround(100 * share)) + " %";
}

std::string text_of(const count_word& n) {
  std::string text = three_digits(n.of);
  const std::string_view noun = n.of == 1 ? n.one : n.many;
  return noun.empty() ? text : text.append(1, ' ').append(noun);
}

std::string text_of(const phrase& sentences) {
  struct {
    std::string operator()(const share_word& w) const { return whole_percent(w.of); }
    std::string operator()(const time_word& w) const { return human_time(w.ns); }
    std::string operator()(const count_word& w) const { return text_of(w); }
    std::string operator()(const ordinal_word& w) const {
      const bool teen = w.of / 10 % 10 == 1;
      const std::size_t last = teen ? 0 : w.of % 10;
      return std::to_string(w.of) + (last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
    }
    std::string operator()(const name_word& w) const { return printable_line(w.of); }
  } const shown;
  std::string text;
  std::size_t next = 0;
  for (const char c : sentences.pattern) {
    if (c == '%' && next < sentences.with.size()) {
      text += std::visit(shown, sentences.with[next++]);
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace lotus::tool
