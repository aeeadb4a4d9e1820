// Finds the known words that are most similar to a mistyped word.
#ifndef LOTUS_TOOL_BASE_NEAREST_HPP
#define LOTUS_TOOL_BASE_NEAREST_HPP

#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// Returns at most three words of `known` that differ from `word` in a few letters, the most
/// similar first. Ignores case.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

/// Returns a question such as "did you mean 'stats' or 'start'?"; "" if no word is similar.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_NEAREST_HPP
