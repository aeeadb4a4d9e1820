#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "comparison/conclusion.hpp"
#include "describe/described_table.hpp"
#include "describe/description.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_bytes = 60'000;

/// The text of a comment on GitHub, whose length is limited: table rows that do not fit are left
/// out, and a line says how many.
class comment {
 public:
  void line(const std::string& text) { text_ += text + '\n'; }

  /// Adds a table whose first column contains names and whose other columns contain numbers.
  template <class Row, class NameOf>
  void table_of(const std::string& head, const std::vector<Row>& of, const NameOf& name_of) {
    const std::vector<named_row> named = named_rows(of, name_of);
    const std::vector<const field*> columns =
        columns_in(named, description_of(of.data()), markdown_table);
    std::vector<table::cells> rows{{head}};
    for (const field* one : columns) rows[0].push_back(side_names().head_of(*one));
    for (const auto& [name, row] : named) rows.push_back(row_of(name, row, columns));
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::string row = "|";
      for (const std::string& cell : rows[i]) row += ' ' + markdown_text(cell) + " |";
      if (text_.size() + row.size() > max_bytes) {
        ++left_out;
        continue;
      }
      line(row);
      if (i > 0) continue;
      row = "| :--- |";
      for (std::size_t c = 1; c < rows[i].size(); ++c) row += " ---: |";
      line(row);
    }
    if (left_out > 0) line("\n" + std::to_string(left_out) + " more rows are left out.");
    line("");
  }

  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string markdown_text(std::string_view text) {
  constexpr std::string_view markup = "\\`*_~[]!$";
  constexpr std::string_view linked = "@#";
  constexpr std::pair<char, std::string_view> entities[] = {{'&', "&amp;"}, {'<', "&lt;"},
                                                            {'>', "&gt;"},  {'|', "&#124;"},
                                                            {':', "&#58;"}, {'w', "&#119;"}};
  const std::string shown = printable_line(text);
  std::string safe;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const char c = shown[i];
    const auto* const entity = std::find_if(std::begin(entities), std::end(entities),
                                            [c](const auto& of) { return of.first == c; });
    // "://" would become a link and ":smile:" an image.
    const bool is_plain = (c == ':' && (i + 1 == shown.size() || shown[i + 1] == ' ')) ||
                          (c == 'w' && shown.compare(i, 4, "www.") != 0);
    if (markup.find(c) != std::string_view::npos) safe += '\\';
    if (entity == std::end(entities) || is_plain) {
      safe += c;
    } else {
      safe += entity->second;
    }
    // An empty HTML comment after '@' or '#' prevents GitHub from seeing a mention of a user or a
    // reference to an issue.
    if (linked.find(c) != std::string_view::npos) safe += "<!-- -->";
  }
  return safe;
}

std::string comparison_markdown(const compared_sides& sides, const comparison& found) {
  comment to;
  for (const compared_loader& l : found.loaders) {
    const std::string throughput = throughput_of(l);
    const std::string conclusion = conclusion_of(l);
    std::string head = throughput.empty() ? conclusion : throughput;
    if (!l.loader.empty()) head.insert(0, "loader " + l.loader + ": ");
    to.line("### " + markdown_text(head) + '\n');
    if (!throughput.empty()) to.line(markdown_text(conclusion) + '\n');
    for (const std::string& text : facts_of(l)) to.line(markdown_text(text) + '\n');
    const std::vector<std::string> unlike = unlike_of(l);
    for (const std::string& text : unlike) to.line("- the runs differ in " + markdown_text(text));
    if (!unlike.empty()) to.line("");
    to.table_of("mean time of", l.rows, table_title);
    for (const std::string& text : explanations_of(l)) to.line(text + '\n');
    if (sides.fail_above) to.line(markdown_text(failure_text(l, *sides.fail_above)) + '\n');
    if (!l.stages.empty()) {
      to.table_of("stage", l.stages, [](const compared_stage& of) { return of.name; });
    }
    std::string runs = counted(l.runs_before, "run", "runs") + " before, " +
                       counted(l.runs_after, "run", "runs") + " after";
    if (l.runs_before < 2 && l.runs_after < 2) {
      runs += ": the intervals ignore that two runs of the same program can differ";
    }
    to.line("<sub>" + runs + "; lotus-tool " LOTUS_TOOL_VERSION "</sub>\n");
  }
  return to.text();
}

}  // namespace lotus::tool
