// Makes sentences of a template and typed values. A template is stored with the finding that uses
// it; only text_of() makes texts.
#ifndef LOTUS_TOOL_FINDINGS_WORDS_HPP
#define LOTUS_TOOL_FINDINGS_WORDS_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lotus::tool {

struct share_word {
  double of = 0;  ///< share (0..1), shown as a whole percentage
};
/// A share that is shown with two decimals.
struct exact_share_word {
  double of = 0;
};
struct time_word {
  double ns = 0;
};
/// A rate, such as "12.4 batches/s".
struct rate_word {
  std::optional<double> per_s;
};
/// A number, shown with three digits, and its noun.
struct count_word {
  double of = 0;
  std::string_view one;   ///< noun after 1, such as "batch"; "" for a number alone
  std::string_view many;  ///< noun after other numbers

  template <class Number>
  explicit count_word(Number n, std::string_view of_one = {}, std::string_view of_many = {})
      : of(static_cast<double>(n)), one(of_one), many(of_many) {}
};
struct ordinal_word {
  std::size_t of = 0;  ///< shown as "3rd" or "16th"
};
/// A name from the recording, or words that were chosen by the facts.
struct name_word {
  std::string of;
};
using phrase_word = std::variant<share_word, exact_share_word, time_word, rate_word, count_word,
                                 ordinal_word, name_word>;

/// Sentences. Each % in the template stands for the next value, and %% for a percent sign.
struct phrase {
  std::string pattern{};
  std::vector<phrase_word> with{};

  bool empty() const noexcept { return pattern.empty(); }
  phrase& add(std::string_view more, const std::vector<phrase_word>& values = {}) {
    pattern += more;
    with.insert(with.end(), values.begin(), values.end());
    return *this;
  }
  phrase& add(const phrase& more) { return add(more.pattern, more.with); }
};

/// Returns phrases as one, with "; " between them.
phrase joined(const std::vector<phrase>& all);

std::string text_of(const phrase& sentences);
std::vector<std::string> texts_of(const std::vector<phrase>& all);

/// Returns a rate such as "12.4 batches/s".
std::string rate(std::optional<double> per_second);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_WORDS_HPP
