// Makes sentences of a template and typed values. A template is stored with the finding that uses
// it; only text_of() makes texts.
#ifndef LOTUS_TOOL_FINDINGS_WORDS_HPP
#define LOTUS_TOOL_FINDINGS_WORDS_HPP

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lotus::tool {

struct share_word {
  double of = 0;  ///< share (0..1), shown as a whole percentage
};
struct time_word {
  double ns = 0;
};
struct count_word {
  double of = 0;
  std::string_view one;   ///< noun after 1, such as "batch"; "" for a number alone
  std::string_view many;  ///< noun after other numbers
};
struct ordinal_word {
  std::size_t of = 0;  ///< shown as "3rd" or "16th"
};
/// A name from the recording, or a part of a sentence that was already put together.
struct name_word {
  std::string of;
};
using word = std::variant<share_word, time_word, count_word, ordinal_word, name_word>;

/// Sentences with a final period. Each % in the template stands for the next value.
struct phrase {
  std::string_view pattern;
  std::vector<word> with{};

  bool empty() const noexcept { return pattern.empty(); }
};

std::string text_of(const phrase& sentences);

/// Returns a number with its noun, such as "1 batch" or "2 batches".
std::string text_of(const count_word& n);

/// Returns a whole percentage, such as "86 %".
std::string whole_percent(double share);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_WORDS_HPP
