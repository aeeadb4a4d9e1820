#include "commands/top/screen.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "describe/described_table.hpp"
#include "log/shown_name.hpp"
#include "model/pipeline/side_data.hpp"

namespace lotus::tool {
namespace {

/// Shortens a text to fit on one line, and marks the end with "…" if something was cut off.
std::string cut(std::string_view text, std::size_t columns) {
  std::size_t shown = 0;
  std::size_t last = 0;  // offset of the last character that can be shown if "…" must follow
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U) continue;
    if (shown == columns) return std::string(text.substr(0, last)) + "…";
    last = i;
    ++shown;
  }
  return std::string(text);
}

constexpr std::size_t widest_name = 34;

/// A verdict that is older than this is shown with its age.
constexpr std::int64_t old_ns = 15'000'000'000;

std::string name_of(std::string_view text) {
  return cut(printable_line(text), widest_name);
}

/// Breaks a text into at most `most` lines; the words that do not fit are omitted.
std::vector<std::string> wrap(const std::string& text, std::size_t columns, std::size_t most) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    const bool fits = !lines.empty() && lines.back().size() + 1 + word.size() <= columns;
    if (fits) {
      lines.back() += ' ' + word;
    } else if (lines.size() < most) {
      lines.push_back(word);
    } else {
      while (lines.back().size() + 2 > columns && lines.back().find(' ') != std::string::npos) {
        lines.back().resize(lines.back().rfind(' '));
      }
      lines.back() += " …";
      break;
    }
  }
  for (std::string& line : lines) line = cut(line, columns);
  return lines;
}

/// A part of the screen, such as the table of operations; its first line is the header.
struct part {
  std::vector<std::string> lines{};
  /// Minimum number of lines, which the part gets if the screen is large enough for all parts.
  std::size_t least = 0;
  std::size_t marked = 0;  ///< index of a line that is always shown; 0: none
  std::size_t given = 0;
};

template <class T>
std::vector<const field*> described_columns() {
  return columns_of(description_of(static_cast<const T*>(nullptr)));
}

/// Returns a table with a row for each of `rows`. Omits columns that do not fit, so that no number
/// is cut off. The table has the form `rows`, because tables of other forms end with a line that
/// mentions --wide, an option that `top` does not have.
template <class T, class NameOf>
part table_part(const std::string& head, const std::vector<T>& rows, const NameOf& name_of,
                std::size_t least, std::size_t width,
                const std::vector<const field*>& columns = described_columns<T>()) {
  if (rows.empty()) return {};
  table lines = table_with(head, columns, {}, table_form::rows);
  for (const T& row : rows) lines.row(row_of(name_of(row), &row, columns));
  return {printed_lines(width, [&lines](std::ostream& out) { lines.print(out); }), least};
}

/// Returns a title that distinguishes a run from the other runs.
std::string title_of(const live_run& run) {
  std::string text = run.dir;
  if (!run.loader.empty()) text += ", loader " + run.loader;
  if (!run.consumer.empty()) text += ", host " + run.consumer;
  return printable_line(text);
}

part runs_part(const std::vector<live_run>& runs, const screen_state& state) {
  if (runs.size() < 2) return {};
  const std::size_t chosen = std::min(state.chosen, runs.size() - 1);
  const auto name = [&](const live_run& run) {
    // If a title is too long, its end is shown, because many titles begin in the same way.
    std::string title = title_of(run);
    constexpr std::size_t widest = 34;
    if (title.size() > widest) title = ".." + printable_line(title.substr(title.size() - widest));
    return (&run == &runs[chosen] ? "> " : "  ") + title;
  };
  part found = table_part("  run", runs, name, 4, state.columns);
  found.marked = chosen + 1;
  return found;
}

std::string name_of(const live_operation& op, double window_s) {
  if (!op.aggregated) return name_of(op.name);
  const bool whole = std::abs(op.interval_s - window_s) <= 0.2 * window_s;
  const std::string mark =
      " (aggregated" + (whole ? "" : ", " + human_time(op.interval_s * 1e9)) + ')';
  return cut(printable_line(op.name), widest_name - mark.size()) + mark;
}

part operations_part(const live_figures& now, const screen_state& state) {
  std::vector<live_operation> ordered = now.operations;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [&](const live_operation& a, const live_operation& b) {
                     return value_of(a, state.order) > value_of(b, state.order);
                   });
  ordered.resize(std::min(most_operations, ordered.size()));
  std::vector<field> fields = description_of(static_cast<const live_operation*>(nullptr)).fields();
  const std::string percent = "% of " + human_time(now.window_s * 1e9);
  fields[1].shown.title = percent;
  // The column that determines the order is never omitted.
  constexpr std::size_t of_orders[] = {0, 2, 3, 5};
  column& order = fields[of_orders[static_cast<std::size_t>(state.order)]].shown;
  order.dropped = 0;
  std::vector<const field*> columns;
  columns.reserve(fields.size());
  for (const field& one : fields) columns.push_back(&one);
  return table_part(
      "operation (by " + std::string(order.title) + ')', ordered,
      [&now](const live_operation& op) { return name_of(op, now.window_s); }, 5, state.columns,
      columns);
}

/// Returns what operations wait for, with the age of this information if it is old: one sentence
/// for each operation that is blocked for more than a tenth of its time.
part waits_part(const live_run& run, std::size_t columns) {
  if (run.now.operations.empty()) return {};
  const std::int64_t age_ns = run.looked_ns - run.verdict_ns;
  part found{
      {"  why operations wait" + (age_ns < old_ns ? "" : ", " + human_time(age_ns) + " ago")}, 2};
  constexpr std::size_t max_lines = 3;
  constexpr double min_blocked = 0.1;
  for (const live_wait& wait : run.waits) {
    const std::string text = waiting_text(run.blocked_on, shown_name(wait.name), wait.blocked_ns,
                                          wait.total_ns, min_blocked);
    for (const std::string& line : wrap(text, columns - 2, max_lines)) {
      found.lines.push_back("  " + line);
    }
  }
  return found.lines.size() > 1 ? found : part();
}

part counters_part(const live_figures& now, std::size_t columns) {
  static const description<counter_figures> described(
      "counter", "a number that the program reports over time",
      {
          {"", &counter_figures::last, "the latest value", column{"last"}},
          {"", &counter_figures::min, "the smallest value", column{"min"}},
          {"", &counter_figures::mean, "weighted by time", column{"mean over time"}},
          {"", &counter_figures::max, "the largest value", column{"max"}},
      });
  return table_part(
      "counter", now.counters, [](const counter_figures& c) { return name_of(c.name); }, 2, columns,
      columns_of(described));
}

/// Distributes the screen's rows. Each part first gets its minimum; then the parts get the
/// remaining rows in the given order.
/// @param rows  number of available rows; nullopt: no limit.
void share_out(std::vector<part>& parts, std::optional<std::size_t> rows) {
  if (!rows) {
    for (part& p : parts) p.given = p.least == 0 ? 0 : p.lines.size();
    return;
  }
  std::size_t room = *rows;
  for (part& p : parts) {
    const std::size_t least = std::min(p.least, p.lines.size());
    if (least == 0 || least > room) continue;
    p.given = least;
    room -= least;
  }
  for (part& p : parts) {
    if (p.given == 0) continue;
    const std::size_t more = std::min(p.lines.size() - p.given, room);
    p.given += more;
    room -= more;
  }
}

std::string first_line(const live_run& run) {
  std::string text = title_of(run);
  const run_state is = run.state();
  if (is != run_state::unknown) {
    text += is == run_state::ended ? ": the process " : ": ";
    text += words_of(is);
  }
  std::uint64_t in_rings = 0;
  std::size_t killed = 0;
  for (const seen_process& p : run.processes) {
    if (p.state != ring_state::dead) continue;
    ++killed;
    in_rings += p.in_ring;
  }
  if (killed > 0) {
    text += " (" + std::to_string(killed) + " killed, " + std::to_string(in_rings) +
            " records not yet in the logs: `lotus-tool recover`)";
  }
  return text;
}

std::string rates(const live_figures& now) {
  std::string text;
  if (now.batches > 0) text += three_digits(now.batches_per_s) + " batches/s, ";
  text += three_digits(now.operations_per_s) + " operations/s";
  if (now.aggregated_per_s > 0) {
    text += " and " + three_digits(now.aggregated_per_s) + " aggregated calls/s";
  }
  return text;
}

/// Returns how much the consumer waits, and how many batches are ready for it; "" if there is no
/// consumer.
std::string consumer_line(const live_figures& now) {
  std::string text;
  if (now.wait_share) {
    text =
        "consumer waits " + human_text({"", unit::whole_share}, *now.wait_share) + " of its time";
  }
  if (now.batches == 0) return text;
  return text + (text.empty() ? "" : ", ") + std::to_string(now.ready) +
         (now.ready == 1 ? " batch ready" : " batches ready");
}

/// Returns the verdict, with its age if it is old; if the window contains too few batches, returns
/// a text that says so.
std::string verdict_of(const live_run& run) {
  if (run.now.batches < min_batches) {
    return "no verdict: too few batches in the window (" + std::to_string(run.now.batches) + ")";
  }
  const std::int64_t age_ns = run.looked_ns - run.verdict_ns;
  return (age_ns < old_ns ? "" : human_time(age_ns) + " ago: ") + text_of(run.verdict.words);
}

/// Returns what became of the window when the computer's clock was set.
std::string clock_note(std::int64_t set_ns) {
  const std::string length = human_time(std::abs(set_ns));
  return set_ns < 0 ? "the clock was set back by " + length +
                          "; records of the times that come twice are mixed"
                    : "the clock was set forward by " + length;
}

/// Returns a warning about a wait, or a time without a batch, that is unusually long.
std::string hang_text(const live_hang& hang, const live_run& run) {
  std::string text = (hang.is_wait ? "the consumer has waited for a batch for " : "no batch for ") +
                     human_time(hang.ns);
  if (run.usual_gap_ns > 0) text += " (usually one every " + human_time(run.usual_gap_ns) + ")";
  if (run.state() == run_state::unknown) text += "; it is unknown whether the process still runs";
  return text;
}

}  // namespace

std::vector<std::string> printed_lines(std::size_t columns,
                                       const std::function<void(std::ostream&)>& print) {
  std::stringstream text;
  set_line_width(text, columns);
  print(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> draw_screen(const std::vector<live_run>& runs, const screen_state& state) {
  std::ostringstream styles;
  if (state.colours) allow_colors(styles);
  std::vector<std::string> lines;
  const auto say = [&](const std::string& text, std::optional<style> as = std::nullopt) {
    const std::string fitting = cut(text, state.columns);
    lines.push_back(as ? styled(styles, *as, fitting) : fitting);
  };
  const auto tell = [&](const std::string& text, std::size_t most,
                        std::optional<style> as = std::nullopt) {
    for (const std::string& line : wrap(text, state.columns, most)) say(line, as);
  };
  if (runs.empty()) {
    for (const std::string& line : state.threads) say(line);
    if (state.threads.empty()) say("nothing has been recorded in this folder yet");
  } else {
    const live_run& run = runs[std::min(state.chosen, runs.size() - 1)];
    say(first_line(run), style::bold);
    const std::size_t most = state.rows && *state.rows < 30 ? 3 : 6;
    const std::optional<verdict> is = run.verdict.is;
    const bool good = is == verdict::balanced || is == verdict::consumer_bound;
    tell(printable_line(verdict_of(run)), most, good ? style::green : style::yellow);
    tell("last " + human_time(run.now.window_s * 1e9) +
             (run.state() == run_state::ended ? " of the run: " : ": ") + rates(run.now),
         2);
    if (const std::string consumer = consumer_line(run.now); !consumer.empty()) say(consumer);
    if (run.records.dropped > 0) tell(dropped_text(run.records), 2, style::yellow);
    if (run.records.lost > 0) tell(lost_text(run.records.lost), 2, style::yellow);
    if (run.clock_set_ns != 0) say(clock_note(run.clock_set_ns), style::yellow);
    if (const auto hang = run.hang()) say(hang_text(*hang, run), style::red);
    const auto stage_name = [](const live_stage& s) { return name_of(s.name); };
    const auto batch_name = [](const live_batch& b) {
      return "batch " + std::to_string(shown_number(b.number));
    };
    std::vector<part> parts{
        operations_part(run.now, state),
        table_part("stage", run.now.stages, stage_name, 4, state.columns),
        table_part("slowest batches", run.now.slowest, batch_name, 3, state.columns),
        runs_part(runs, state),
        counters_part(run.now, state.columns),
        waits_part(run, state.columns)};
    const std::size_t used_rows = lines.size() + (state.keys ? 1 : 0);
    share_out(parts, state.rows ? std::optional(*state.rows - std::min(used_rows, *state.rows))
                                : std::nullopt);
    // The parts as they appear on the screen from top to bottom.
    for (const std::size_t p : {3U, 1U, 0U, 5U, 2U, 4U}) {
      const part& shown = parts[p];
      for (std::size_t i = 0; i < shown.given; ++i) {
        // If the line of the chosen run does not fit, it replaces the last line that fits.
        const bool last = i + 1 == shown.given && shown.marked >= shown.given;
        const std::string& line = shown.lines[last ? shown.marked : i];
        say(line, i == 0 ? std::optional(style::bold) : std::nullopt);
      }
    }
  }
  if (state.rows) lines.resize(std::max(*state.rows, std::size_t{1}));
  if (state.keys) {
    const std::string keys = std::string(state.paused ? "paused | " : "") +
                             "sort: s self  c calls  t total  m max | " +
                             (runs.size() > 1 ? "r next run  " : "") + "p pause  q quit";
    lines.back() =
        styled(styles, state.paused ? style::yellow : style::bold, cut(keys, state.columns));
  }
  return lines;
}

}  // namespace lotus::tool
