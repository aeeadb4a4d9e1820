#include "base/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/text.hpp"

namespace lotus::tool {
namespace {

/// Converts an ASCII letter to lower case. Unlike std::tolower, this does not depend on the locale.
char small(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Returns the Levenshtein distance: the number of letters to insert, remove or change to turn one
/// word into the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (small(a[i]) == small(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t max_words = 3;
  // The maximum number of letters in which a similar word may differ: one if `word` has up to three
  // letters; otherwise two or a third of its letters, whichever is more.
  const std::size_t allowed = word.size() <= 3 ? 1 : std::max<std::size_t>(2, word.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> similar;
  for (const std::string& other : known) {
    const std::size_t shorter = std::min(word.size(), other.size());
    if (std::max(word.size(), other.size()) - shorter > allowed) continue;
    const std::size_t edits = distance(word, other);
    if (edits <= allowed && edits < shorter) similar.emplace_back(edits, other);
  }
  std::sort(similar.begin(), similar.end());
  std::vector<std::string> words;
  for (auto& [edits, other] : similar) {
    if (words.size() < max_words) words.push_back(std::move(other));
  }
  return words;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string> words = nearest(word, known);
  const std::string text =
      enumerated(words, " or ", [](const std::string& one) { return '\'' + one + '\''; });
  return text.empty() ? text : "did you mean " + text + '?';
}

}  // namespace lotus::tool
