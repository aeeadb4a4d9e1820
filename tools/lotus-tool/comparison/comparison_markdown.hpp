// Formats a comparison as Markdown for a comment on a pull request.
#ifndef LOTUS_TOOL_COMPARISON_COMPARISON_MARKDOWN_HPP
#define LOTUS_TOOL_COMPARISON_COMPARISON_MARKDOWN_HPP

#include <string>
#include <string_view>

#include "comparison/comparison.hpp"

namespace lotus::tool {

/// Escapes `text` so that Markdown shows it unchanged, even in a table: without markup, links,
/// mentions or references to issues. Control characters become %XX.
std::string markdown_text(std::string_view text);

/// Returns a heading with the change of the throughput, the reason for it, other differences
/// between the sides, and a table of all means. The text has at most 60,000 bytes, because GitHub
/// rejects comments above 65,536 characters.
std::string comparison_markdown(const compared_sides& sides, const comparison& found);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_COMPARISON_MARKDOWN_HPP
