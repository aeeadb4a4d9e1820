// What a comparison says: in words, as JSON and as Markdown.
#ifndef LOTUS_TOOL_COMPARISON_CONCLUSION_HPP
#define LOTUS_TOOL_COMPARISON_CONCLUSION_HPP

#include <string>
#include <string_view>
#include <vector>

#include "comparison/comparison.hpp"
#include "describe/described_table.hpp"
#include "model/chance/between_runs.hpp"

namespace lotus::tool {

/// Returns the name of a row in the output, such as "Crop", "Token (aggregated)" or "preprocess".
std::string title_of(const compared_times& row);
/// Returns the title of a row in a table, such as "consumer waits" for the row "wait".
std::string table_title(const compared_times& row);

/// Returns the lock that explains a cause, with its holder; "" if there is none.
std::string lock_of(const cause& of);
/// Returns sentences on what limits each side, and on what was found on one of the sides only.
std::vector<std::string> facts_of(const compared_loader& loader);
/// Returns sentences about differences between the two sides that affect this loader but are not
/// changes of the program, such as other machines or other batch sizes.
std::vector<std::string> unlike_of(const compared_loader& loader);

/// Returns "preprocessing of a batch became 1.23 ± 0.04 times slower, because ..."
std::string conclusion_of(const compared_loader& loader);
/// Returns whether the comparison passes with --fail-above, and the rows that became slower than it
/// allows.
std::string failure_text(const compared_loader& loader, double allowed);
/// Returns "throughput: 12.1 -> 9.8 batches/s"; "" if a side has no throughput.
std::string throughput_of(const compared_loader& loader);

/// Returns a change as a percentage such as "+12.30 %", or as a factor such as "837x" if the value
/// has at least doubled; "" if it is unknown.
std::string growth(const compared_value& value);

/// Two texts: how much a row changed, and the confidence interval of the change. Both are
/// percentages, or both are factors.
struct change_texts {
  std::string change;
  std::string interval;
  bool factors = false;    ///< whether the texts are factors, because the value may have doubled
  bool uncertain = false;  ///< whether the interval is too wide to be useful
};
change_texts texts_of_change(const compared_times& row);
/// Returns sentences that explain the changes in the table of a loader.
std::vector<std::string> explanations_of(const compared_loader& loader);

/// The tables of a comparison, and the side whose name replaces the * in the title of a column, as
/// bits of field_facts::outputs.
inline constexpr unsigned wide_table = 1;
inline constexpr unsigned narrow_table = 2;
inline constexpr unsigned terminal_tables = wide_table | narrow_table;
inline constexpr unsigned markdown_table = 4;
inline constexpr unsigned every_table = terminal_tables | markdown_table;
inline constexpr unsigned of_before = 8;
inline constexpr unsigned of_after = 16;

/// The names of the two sides in the heads of tables.
struct side_names {
  std::string before{"before"};
  std::string after{"after"};

  std::string head_of(const field& column) const;
};
const description<compared_times>& description_of(const compared_times*);
const description<compared_stage>& description_of(const compared_stage*);

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
