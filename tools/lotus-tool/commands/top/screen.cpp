#include "commands/top/screen.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "log/process_info.hpp"
#include "model/pipeline/side_data.hpp"

namespace lotus::tool {
namespace {

std::string human(std::int64_t ns) {
  return human_time(static_cast<double>(ns));
}

std::string share(double of) {
  return std::to_string(std::min(std::lround(of * 100), of < 1 ? 99L : 100L)) + " %";
}

std::string share(const std::optional<double>& of) {
  return of ? share(*of) : "-";
}

/// Returns the operation's time as a percentage of the window: eight busy threads are 800 %. A call
/// counts in full even if it began before the window, so the result is limited to 100 % per thread.
std::string share_of_the_time(const live_operation& op) {
  const double of = static_cast<double>(op.self_ns) / 1e9 / op.interval_s;
  if (of < 1) return share(of);
  const double most = op.threads > 0 ? static_cast<double>(op.threads) : of;
  return whole_percent(std::min(of, most));
}

std::string ago(const live_run& run, std::int64_t ns) {
  return human(std::max<std::int64_t>(run.looked_ns - ns, 0)) + " ago";
}

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

/// Formats a table. Omits columns that do not fit, so that no number is cut off. The table must
/// have the form `rows`, because tables of other forms end with a line that mentions --wide, an
/// option that `top` does not have.
std::vector<std::string> lines_of(const table& rows, std::size_t columns) {
  std::ostringstream text;
  set_line_width(text, columns);
  rows.print(text);
  std::istringstream in(text.str());
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// A part of the screen, such as the table of operations; its first line is the header.
struct part {
  std::vector<std::string> lines;
  /// Minimum number of lines, which the part gets if the screen is large enough for all parts.
  std::size_t least = 0;
  std::size_t marked = 0;  ///< index of a line that is always shown; 0: none
  std::size_t given = 0;
};

part runs_part(const std::vector<live_run>& runs, const screen_state& state) {
  part found;
  if (runs.size() < 2) return found;
  table rows(table_form::rows);
  rows.row({"  run", "batches/s", "consumer waits", "batches ready", "last batch", "process"});
  rows.spare({"process", "batches ready", "last batch"});
  for (const live_run& run : runs) {
    const bool chosen = &run == &runs[std::min(state.chosen, runs.size() - 1)];
    if (chosen) found.marked = static_cast<std::size_t>(&run - runs.data()) + 1;
    // If a title is too long, its end is shown, because many titles begin in the same way.
    std::string title = printable_line(run.title());
    constexpr std::size_t widest = 34;
    if (title.size() > widest) title = ".." + printable_line(title.substr(title.size() - widest));
    const std::string is = run.state();
    rows.row({(chosen ? "> " : "  ") + title, three_digits(run.now.batches_per_s),
              share(run.now.wait_share), std::to_string(run.now.ready),
              run.last_batch_ns ? ago(run, *run.last_batch_ns) : "-", is.empty() ? "-" : is});
  }
  found.lines = lines_of(rows, state.columns);
  found.least = 4;
  return found;
}

part stages_part(const live_figures& now, std::size_t columns) {
  part found;
  if (now.stages.empty()) return found;
  table rows(table_form::rows);
  rows.row({"stage", "threads", "finished/s", "busy", "no input", "queue full", "queued results"});
  for (const live_stage& s : now.stages) {
    rows.row({name_of(s.name), std::to_string(s.threads), three_digits(s.per_s),
              share(s.shares.busy), share(s.shares.starved), share(s.shares.blocked),
              s.queued ? std::to_string(*s.queued) : "-"});
  }
  found.lines = lines_of(rows, columns);
  found.least = 4;
  return found;
}

std::string name_of(const live_operation& op, double window_s) {
  if (!op.aggregated) return name_of(op.name);
  const bool whole = std::abs(op.interval_s - window_s) <= 0.2 * window_s;
  const std::string mark =
      " (aggregated" + (whole ? "" : ", " + human_time(op.interval_s * 1e9)) + ')';
  return cut(printable_line(op.name), widest_name - mark.size()) + mark;
}

/// Returns the head of the column by which operations are ordered.
const char* head_of(live_order order) {
  static constexpr const char* heads[] = {"self time", "calls/s", "total", "max"};
  return heads[static_cast<std::size_t>(order)];
}

part operations_part(const live_figures& now, const screen_state& state) {
  part found;
  if (now.operations.empty()) return found;
  std::vector<live_operation> ordered = now.operations;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [&](const live_operation& a, const live_operation& b) {
                     return value_of(a, state.order) > value_of(b, state.order);
                   });
  ordered.resize(std::min(most_operations, ordered.size()));
  table rows(table_form::rows);
  const char* const order = head_of(state.order);
  // Columns to omit if the screen is narrow. The column that determines the order is never omitted.
  const std::string percent = "% of " + human_time(now.window_s * 1e9);
  std::vector<std::string> spare{"mean", "max", "total", "calls/s", percent};
  spare.erase(std::remove(spare.begin(), spare.end(), order), spare.end());
  rows.spare(std::move(spare));
  rows.row({"operation (by " + std::string(order) + ')', "self time", percent, "calls/s", "total",
            "mean", "max"});
  for (const live_operation& op : ordered) {
    const auto calls = static_cast<double>(std::max<std::uint64_t>(op.calls, 1));
    rows.row({name_of(op, now.window_s), human(op.self_ns), share_of_the_time(op),
              three_digits(static_cast<double>(op.calls) / op.interval_s), human(op.total_ns),
              human_time(static_cast<double>(op.total_ns) / calls), human(op.max_ns)});
  }
  found.lines = lines_of(rows, state.columns);
  found.least = 5;
  return found;
}

/// Returns what operations wait for, with the age of this information if it is old.
part waits_part(const live_run& run, std::size_t columns) {
  part found;
  if (run.waits.empty() || run.now.operations.empty()) return found;
  const std::int64_t age_ns = run.looked_ns - run.verdict_ns;
  found.lines.push_back("  why operations wait" +
                        (age_ns < old_ns ? "" : ", " + human(age_ns) + " ago"));
  constexpr std::size_t max_lines = 3;
  for (const std::string& text : run.waits) {
    for (const std::string& line : wrap(text, columns - 2, max_lines)) {
      found.lines.push_back("  " + line);
    }
  }
  found.least = 2;
  return found;
}

part batches_part(const live_run& run, std::size_t columns) {
  part found;
  if (run.now.slowest.empty()) return found;
  table rows(table_form::rows);
  rows.row({"slowest batches", "preprocess", "consumer waited", "received"});
  for (const live_batch& b : run.now.slowest) {
    rows.row({"batch " + std::to_string(shown_number(b.number)), human(b.preprocessing_ns),
              b.wait_ns ? human(*b.wait_ns) : "-", b.received_ns ? ago(run, *b.received_ns) : "-"});
  }
  found.lines = lines_of(rows, columns);
  found.least = 3;
  return found;
}

part counters_part(const live_figures& now, std::size_t columns) {
  part found;
  if (now.counters.empty()) return found;
  table rows(table_form::rows);
  rows.row({"counter", "last", "min", "mean over time", "max"});
  for (const counter_figures& c : now.counters) {
    rows.row({name_of(c.name), std::to_string(c.last), std::to_string(c.min), three_digits(c.mean),
              std::to_string(c.max)});
  }
  found.lines = lines_of(rows, columns);
  found.least = 2;
  return found;
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
  std::string text = printable_line(run.title());
  const std::string is = run.state();
  if (!is.empty()) text += (is == "has ended" ? ": the process " : ": ") + is;
  std::uint64_t in_rings = 0;
  std::size_t killed = 0;
  for (const seen_process& p : run.processes) {
    const bool dead = p.state == ring_state::dead;
    if (dead) ++killed;
    if (dead) in_rings += p.in_ring;
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
  if (now.wait_share) text = "consumer waits " + share(*now.wait_share) + " of its time";
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
  return (age_ns < old_ns ? "" : human(age_ns) + " ago: ") + run.verdict;
}

/// Returns one text about dropped records and one about lost records, if there are any.
std::vector<std::string> losses_of(const record_counts& records) {
  std::vector<std::string> texts;
  if (records.dropped > 0) texts.push_back(dropped_text(records));
  if (records.lost > 0) texts.push_back(lost_text(records.lost));
  return texts;
}

}  // namespace

std::vector<std::string> draw_screen(const std::vector<live_run>& runs, const screen_state& state) {
  std::ostringstream styles;
  if (state.colours) allow_colors(styles);
  std::vector<std::string> lines;
  const auto say = [&](const std::string& text, std::optional<style> as = std::nullopt) {
    const std::string fitting = cut(text, state.columns);
    lines.push_back(as ? styled(styles, *as, fitting) : fitting);
  };
  if (runs.empty()) {
    for (const std::string& line : state.threads) say(line);
    if (state.threads.empty()) say("nothing has been recorded in this folder yet");
  } else {
    const live_run& run = runs[std::min(state.chosen, runs.size() - 1)];
    say(first_line(run), style::bold);
    const std::size_t most = state.rows && *state.rows < 30 ? 3 : 6;
    for (const std::string& line : wrap(printable_line(verdict_of(run)), state.columns, most)) {
      if (run.bound == verdict::balanced || run.bound == verdict::consumer_bound) {
        say(line, style::green);
      } else {
        say(line, style::yellow);
      }
    }
    const std::string figures = "last " + human_time(run.now.window_s * 1e9) +
                                (run.state() == "has ended" ? " of the run: " : ": ") +
                                rates(run.now);
    for (const std::string& line : wrap(figures, state.columns, 2)) say(line);
    if (const std::string consumer = consumer_line(run.now); !consumer.empty()) say(consumer);
    for (const std::string& text : losses_of(run.records)) {
      for (const std::string& line : wrap(text, state.columns, 2)) say(line, style::yellow);
    }
    if (!run.clock_note.empty()) say(run.clock_note, style::yellow);
    if (const std::string hang = run.hang(); !hang.empty()) say(hang, style::red);
    std::vector<part> parts{
        operations_part(run.now, state),       stages_part(run.now, state.columns),
        batches_part(run, state.columns),      runs_part(runs, state),
        counters_part(run.now, state.columns), waits_part(run, state.columns)};
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
    std::string keys = "sort: s self  c calls  t total  m max | p pause  q quit";
    if (runs.size() > 1) keys.insert(keys.find("p pause"), "r next run  ");
    lines.back() = styled(styles, state.paused ? style::yellow : style::bold,
                          cut((state.paused ? "paused | " : "") + keys, state.columns));
  }
  return lines;
}

}  // namespace lotus::tool
