#include "findings/words.hpp"

#include "base/printable.hpp"
#include "base/terminal/table.hpp"

namespace lotus::tool {

std::string rate(std::optional<double> per_second) {
  return per_second ? three_digits(*per_second) + " batches/s" : "unknown";
}

phrase joined(const std::vector<phrase>& all) {
  phrase text;
  for (const phrase& one : all) (text.empty() ? text : text.add("; ")).add(one);
  return text;
}

std::string text_of(const phrase& sentences) {
  struct {
    std::string operator()(const share_word& w) const { return whole_percent(w.of); }
    std::string operator()(const exact_share_word& w) const { return human_share(w.of); }
    std::string operator()(const time_word& w) const { return human_time(w.ns); }
    std::string operator()(const rate_word& w) const { return rate(w.per_s); }
    std::string operator()(const count_word& w) const {
      std::string text = three_digits(w.of);
      const std::string_view noun = w.of == 1 ? w.one : w.many;
      return noun.empty() ? text : text.append(1, ' ').append(noun);
    }
    std::string operator()(const ordinal_word& w) const {
      const bool teen = w.of / 10 % 10 == 1;
      const std::size_t last = teen ? 0 : w.of % 10;
      return std::to_string(w.of) + (last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
    }
    std::string operator()(const name_word& w) const { return printable_line(w.of); }
  } const shown;
  std::string text;
  std::size_t next = 0;
  const std::string& pattern = sentences.pattern;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '%' && i + 1 < pattern.size() && pattern[i + 1] == '%') {
      text += pattern[i++];
    } else if (pattern[i] == '%' && next < sentences.with.size()) {
      text += std::visit(shown, sentences.with[next++]);
    } else {
      text += pattern[i];
    }
  }
  return text;
}

std::vector<std::string> texts_of(const std::vector<phrase>& all) {
  std::vector<std::string> texts;
  texts.reserve(all.size());
  for (const phrase& one : all) texts.push_back(text_of(one));
  return texts;
}

}  // namespace lotus::tool
