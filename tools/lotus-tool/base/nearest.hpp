// What somebody may have meant who mistyped a word.
#ifndef LOTUS_TOOL_BASE_NEAREST_HPP
#define LOTUS_TOOL_BASE_NEAREST_HPP

#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// Those of `known` that could be made of `word` by few changes of letters, the likeliest first,
/// three at most; large and small letters are alike.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

/// "did you mean 'stats' or 'start'?"; "" where nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_NEAREST_HPP
