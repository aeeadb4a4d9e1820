// What a comparison says: in words, as JSON and as Markdown.
#ifndef LOTUS_TOOL_COMPARISON_CONCLUSION_HPP
#define LOTUS_TOOL_COMPARISON_CONCLUSION_HPP

#include <string>
#include <string_view>
#include <vector>

#include "comparison/comparison.hpp"
#include "describe/described.hpp"
#include "model/chance/between_runs.hpp"

namespace lotus::tool {

/// Returns the name of a row in the output, such as "Crop", "Token (aggregated)" or "preprocess".
std::string title_of(const compared_times& row);
/// Returns the title of a row in a table, such as "consumer waits" for the row "wait".
std::string table_title(const compared_times& row);

/// Returns sentences about differences between the two sides that affect this loader but are not
/// changes of the program, such as other machines or other batch sizes.
std::vector<std::string> unlike_of(const compared_loader& loader, const comparison& found);

/// Returns "preprocessing of a batch became 1.23 ± 0.04 times slower, because ..."
std::string conclusion_of(const compared_loader& loader);
/// Returns whether the comparison passes with --fail-above, and the rows that became slower than it
/// allows.
std::string failure_text(const compared_loader& loader, double allowed);
/// Returns "throughput: 12.1 -> 9.8 batches/s"; "" if a side has no throughput.
std::string throughput_of(const compared_loader& loader);

/// Returns a change as a percentage such as "+12.30 %", or as a factor such as "837x" if the value
/// has at least doubled.
std::string change_text(double grown_by);

/// Two texts: how much a row changed, and the confidence interval of the change. Both are
/// percentages, or both are factors.
struct change_texts {
  std::string change;
  std::string interval;
  bool factors = false;  ///< whether the texts are factors, because the value may have doubled
};
change_texts texts_of_change(const compared_times& row);

/// An explanation for users of the factors in change_texts.
inline constexpr const char* meaning_of_factors =
    "Changes written with x are factors: 2x means twice the first value.";

/// What change_texts::interval contains if the interval is too wide to be useful, and an
/// explanation for users.
inline constexpr const char* uncertain_interval = "uncertain";
inline constexpr const char* meaning_of_uncertain =
    "'uncertain': the interval is so wide that it says nothing.";

/// A comparison and what was compared; both must outlive this object.
struct shown_comparison {
  const compared_sides* sides = nullptr;
  const comparison* found = nullptr;
};
const description<shown_comparison>& description_of(const shown_comparison*);

/// Escapes `text` so that Markdown shows it unchanged, even in a table: without markup, links,
/// mentions or references to issues. Control characters become %XX.
std::string markdown_text(std::string_view text);

/// Returns a heading with the change of the throughput, the reason for it, other differences
/// between the sides, and a table of all means. The text has at most 60,000 bytes, because GitHub
/// rejects comments above 65,536 characters.
std::string comparison_markdown(const compared_sides& sides, const comparison& found);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_CONCLUSION_HPP
