#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "comparison/conclusion.hpp"
#include "findings/words.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_bytes = 60'000;

std::string shown_time(const std::optional<double>& ns) {
  return ns ? human_time(*ns) : "-";
}

std::string growth(const compared_value& value) {
  const std::optional<double> by = value.grown_by();
  return by ? change_text(*by) : "";
}

std::string count_of_runs(std::size_t n) {
  return std::to_string(n) + (n == 1 ? " run" : " runs");
}

/// The text of a comment on GitHub, whose length is limited: table rows that do not fit are left
/// out, and a line says how many.
class comment {
 public:
  void line(const std::string& text) { text_ += text + '\n'; }

  /// Adds a table whose first column contains text and whose other columns contain numbers.
  void table_of(const std::vector<std::vector<std::string>>& rows) {
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

void add_rows(const compared_loader& l, std::optional<double> allowed, comment& to) {
  bool cpu = false;
  bool slower = false;
  for (const compared_times& r : l.rows) {
    cpu = cpu || r.mean_cpu_ns.common();
    slower = slower || (allowed && r.is_slower(*allowed));
  }
  std::vector<std::vector<std::string>> rows{
      {"mean time of", "before", "after", "change", "95 % interval"}};
  if (cpu) rows[0].emplace_back("change of CPU time");
  if (slower) rows[0].emplace_back("");
  bool factors = false;
  bool uncertain = false;
  for (const compared_times& r : l.rows) {
    const change_texts changed = texts_of_change(r);
    factors = factors || changed.factors;
    uncertain = uncertain || changed.interval == uncertain_interval;
    std::vector<std::string> row{table_title(r), shown_time(r.typical_ns.before),
                                 shown_time(r.typical_ns.after), changed.change, changed.interval};
    if (cpu) row.push_back(growth(r.mean_cpu_ns));
    if (slower) row.emplace_back(r.is_slower(*allowed) ? "SLOWER" : "");
    rows.push_back(std::move(row));
  }
  to.table_of(rows);
  if (factors) to.line(meaning_of_factors + std::string("\n"));
  if (uncertain) to.line(meaning_of_uncertain + std::string("\n"));
}

void add_stages(const std::vector<compared_stage>& stages, comment& to) {
  if (stages.empty()) return;
  std::vector<std::vector<std::string>> rows{
      {"stage", "mean before", "mean after", "change", "capacity before", "capacity after"}};
  for (const compared_stage& s : stages) {
    rows.push_back({s.name, shown_time(s.service_ns.before), shown_time(s.service_ns.after),
                    growth(s.service_ns), rate(s.capacity_per_s.before),
                    rate(s.capacity_per_s.after)});
  }
  to.table_of(rows);
}

}  // namespace

std::string markdown_text(std::string_view text) {
  const std::string shown = printable_line(text);
  std::string safe;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const char c = shown[i];
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '|':
        safe += "&#124;";
        break;
      case '@':
      case '#':
        // An empty HTML comment after '@' or '#' prevents GitHub from seeing a mention of a user or
        // a reference to an issue.
        safe += c;
        safe += "<!-- -->";
        break;
      case ':':
        // "://" would become a link and ":smile:" an image.
        safe += i + 1 < shown.size() && shown[i + 1] != ' ' ? "&#58;" : ":";
        break;
      case 'w':
        safe += shown.compare(i, 4, "www.") == 0 ? "&#119;" : "w";
        break;
      case '\\':
      case '`':
      case '*':
      case '_':
      case '~':
      case '[':
      case ']':
      case '!':
      case '$':
        safe += '\\';
        safe += c;
        break;
      default:
        safe += c;
    }
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
    for (const std::string& text : l.facts) to.line(markdown_text(text) + '\n');
    const std::vector<std::string> unlike = unlike_of(l, found);
    for (const std::string& text : unlike) to.line("- the runs differ in " + markdown_text(text));
    if (!unlike.empty()) to.line("");
    add_rows(l, sides.fail_above, to);
    if (sides.fail_above) to.line(markdown_text(failure_text(l, *sides.fail_above)) + '\n');
    add_stages(l.stages, to);
    std::string runs =
        count_of_runs(l.runs_before) + " before, " + count_of_runs(l.runs_after) + " after";
    if (l.runs_before < 2 && l.runs_after < 2) {
      runs += ": the intervals ignore that two runs of the same program can differ";
    }
    to.line("<sub>" + runs + "; lotus-tool " LOTUS_TOOL_VERSION "</sub>\n");
  }
  return to.text();
}

}  // namespace lotus::tool
