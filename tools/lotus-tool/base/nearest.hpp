// Suggests what a mistyped word may have meant.
#ifndef LOTUS_TOOL_BASE_NEAREST_HPP
#define LOTUS_TOOL_BASE_NEAREST_HPP

#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// The words of `known` that differ from `word` in a few letters, the most similar first, at most
/// three; upper and lower case are equal.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

/// "did you mean 'stats' or 'start'?"; "" if no word is similar.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_NEAREST_HPP
