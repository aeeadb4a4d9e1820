#include "commands/diagnose.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "accelerator/accelerator_text.hpp"
#include "accelerator/ranks.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "commands/diagnose_details.hpp"
#include "commands/diagnose_ranks.hpp"
#include "describe/description.hpp"
#include "findings/diagnosis.hpp"
#include "findings/screen/first_screen.hpp"
#include "findings/verdict.hpp"
#include "model/run_data.hpp"
#include "threads/data/thread_samples.hpp"
#include "threads/view/threads_view.hpp"

namespace lotus::tool {
namespace {

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Returns the commands that the user may want to run next, with a comment about each.
/// @param room  width of the terminal; 0: unlimited.
std::string next_commands(const std::vector<std::pair<std::string, std::string>>& next,
                          std::size_t room) {
  std::size_t width = 0;
  std::size_t comments = 0;
  for (const auto& [command, what] : next) {
    width = std::max(width, command.size());
    comments = std::max(comments, what.size());
  }
  // With a long path, the comments would begin new lines in a terminal, so they are left out.
  const bool commented = room == 0 || 7 + width + 4 + comments <= room;
  std::string text;
  const char* start = "Next:  ";
  for (const auto& [command, what] : next) {
    text.append(start).append(command);
    if (commented) text.append(width - command.size(), ' ').append("  # ").append(what);
    text += '\n';
    start = "       ";
  }
  return text;
}

/// Prints the summary that fits a terminal of 24 lines, the most important part first.
class screen_printer {
 public:
  screen_printer(const diagnosis& d, std::ostream& out, const diagnose_options& options)
      : d_(d), out_(out), next_commands_(options.next_commands), details_(options.details) {}

  /// Prints the summary and, with --details, also everything that the summary omits.
  void print() {
    first_screen all = first_screen_of(d_, max_rows);
    std::string head = head_of(all);
    std::string foot = foot_of(all, true);
    // If the screen has room for only a few lines of the table of the critical path, the suggestion
    // to run `whatif`, which is printed below the table, is omitted.
    std::size_t rows = rows_left(head, foot);
    if (rows < good_rows) {
      foot = foot_of(all, false);
      rows = rows_left(head, foot);
    }
    // If there is still too little room for the table, suggested changes are omitted. The last ones
    // are omitted first, because they are the least useful.
    const std::size_t wanted = rows_wanted(all);
    const auto update = [&] {
      head = head_of(all);
      rows = rows_left(head, foot);
    };
    while (rows < wanted && all.advice.size() > 1) {
      all.advice.pop_back();
      update();
    }
    if (rows < wanted) {
      all.assumption = {};
      update();
    }
    if (rows < wanted) {
      all.not_worth.clear();
      update();
    }
    // If the table still does not fit, it replaces the slowest call.
    if (rows < min_rows && !details_) {
      const phrase slowest = std::exchange(all.slowest, phrase());
      foot = foot_of(all, false);
      update();
      if (rows < min_rows) {
        all.slowest = slowest;
        foot = foot_of(all, false);
      }
    }
    out_ << head;
    if (!d_.pushed) note_label(out_, "consumer");
    if (all.names_in_flight) note_label(out_, "in flight");
    if (rows >= min_rows) print_where(first_screen_of(d_, std::min(rows, max_rows)));
    if (details_) {
      out_ << slowest_of(all);
      print_details(d_, all.advice, out_);
      out_ << '\n' << next_of(true, false);
    } else {
      out_ << foot;
    }
  }

 private:
  static constexpr std::size_t lines = 24;
  static constexpr std::size_t max_rows = 6;
  static constexpr std::size_t good_rows = 4;
  static constexpr std::size_t min_rows = 2;
  static constexpr std::size_t max_warnings = 2;

  /// Returns how many rows the table should have. Rows of small parts are worth less than the last
  /// suggestion if it is a setting of a stage or of the batches in flight, and is predicted to gain
  /// clearly more than the first.
  static std::size_t rows_wanted(const first_screen& s) {
    constexpr int small_percent = 5;
    constexpr double clearly = 0.8;
    std::size_t wanted = good_rows;
    const pipeline_change last =
        s.advice.size() > 1 ? s.advice.back().of->change : pipeline_change{};
    const bool is_named = !last.threads.empty() || last.prefetch || last.in_flight;
    if (is_named && s.advice.back().then_ns < clearly * s.advice.front().then_ns) {
      wanted = static_cast<std::size_t>(
          std::count_if(s.where.begin(), s.where.end(),
                        [](const shown_share& row) { return row.share >= small_percent; }));
    }
    return std::min(s.where.size(), std::clamp(wanted, min_rows, good_rows));
  }

  static std::size_t rows_left(const std::string& head, const std::string& foot) {
    const std::size_t table_head = 2;
    const std::size_t used = lines_of(head) + lines_of(foot) + table_head;
    return used < lines ? lines - used : 0;
  }

  /// Returns the headline. If lines are at least 80 columns wide, it also explains "the consumer".
  std::string headline_of(const first_screen& s) const {
    const bool has_room = line_width(out_) == 0 || line_width(out_) >= 80;
    return text_of(has_room && !s.explained_headline.empty() ? s.explained_headline : s.headline);
  }

  std::string head_of(const first_screen& s) const {
    std::string text = fitted(out_, text_of(s.title), "", "  ") + "\n\n";
    text += styled(out_, style::bold, fitted_sentences(out_, headline_of(s))) + '\n';
    if (!s.why.empty()) text += fitted_sentences(out_, text_of(s.why)) + '\n';
    if (!d_.accelerators.empty()) {
      std::string device = "Accelerator: " + accelerator_headline(d_.accelerators) + '.';
      // Advice about the accelerator is shown only for these two verdicts. With any other verdict,
      // the loader limits the run, and the advice would mislead.
      if (d_.is == verdict::consumer_bound || d_.is == verdict::balanced) {
        device += ' ' + accelerator_advice(d_.accelerators);
      }
      text += fitted_sentences(out_, printable_line(device)) + '\n';
    }
    const std::size_t shown = details_ ? s.warnings.size() : max_warnings;
    for (std::size_t i = 0; i < std::min(s.warnings.size(), shown); ++i) {
      text += styled(out_, style::yellow,
                     fitted_sentences(out_, "Warning: " + text_of(s.warnings[i]) + '.')) +
              '\n';
    }
    if (s.warnings.size() > shown) {
      text += "Warnings not shown: " + std::to_string(s.warnings.size() - shown) +
              " (--details shows them)\n";
    }
    if (!s.advice.empty()) text += '\n' + advice_of(s);
    if (!s.assumption.empty())
      text += fitted_sentences(out_, text_of(s.assumption), "  ", "    ") + '\n';
    if (!s.not_worth.empty() && s.advice.empty()) text += '\n';
    return text + not_worth_of(s);
  }

  /// Returns the changes that gain too little. Each line begins with the same words, so that it can
  /// be understood alone.
  std::string not_worth_of(const first_screen& s) const {
    const std::string start = "  Not worth trying: ";
    const std::size_t width = line_width(out_);
    std::string text;
    std::string line;
    for (const std::string& one : texts_of(s.not_worth)) {
      if (!line.empty() && width > 0 && columns_of(line) + columns_of(one) + 3 > width) {
        text += line + ".\n";
        line.clear();
      }
      line += (line.empty() ? start : ", ") + one;
    }
    return line.empty() ? text : text + line + ".\n";
  }

  std::string advice_of(const first_screen& s) const {
    table rows;
    const bool sure = !s.advice.empty() && s.advice.front().is_sure;
    const std::vector<std::string> head{sure ? "change to try" : "change to try (gain uncertain)",
                                        "predicted run time", "90 % interval"};
    for (const std::string& label : head) note_label(out_, label);
    rows.row(head);
    for (const shown_advice& a : s.advice) {
      // The condition of an uncertain suggestion gets a line of its own, so that the suggestion and
      // its numbers fit on one line.
      const bool apart = line_width(out_) > 0 && !a.is_sure;
      rows.row({apart ? what_of(a) : change_of(a),
                human_time(a.now_ns) + " -> " + human_time(a.then_ns),
                human_time(a.low_ns) + " to " + human_time(a.high_ns)});
      if (apart) rows.row({"  (" + condition_of(a) + ')'});
    }
    std::ostringstream text;
    if (has_colours(out_)) allow_colors(text);
    set_line_width(text, line_width(out_));
    rows.print(text);
    return text.str();
  }

  void print_where(const first_screen& s) const {
    if (s.where.empty()) return;
    const auto percent = [](const std::optional<int>& share) {
      return share ? std::to_string(*share) + " %" : std::string("-");
    };
    const bool cpu = std::any_of(s.where.begin(), s.where.end(),
                                 [](const shown_share& row) { return row.running.has_value(); });
    table rows;
    std::vector<std::string> head{"critical path (% of the run)", "in total"};
    if (cpu) head.insert(head.end(), {"on CPU", "waits for CPU", "blocked"});
    rows.row(head);
    cpu_columns sums;
    for (const shown_share& row : s.where) {
      sums.add(row.running.value_or(0), row.no_cpu.value_or(0), row.blocked.value_or(0));
    }
    rows.spare(sums.smaller());
    for (const shown_share& row : s.where) {
      std::vector<std::string> cells{text_of(row.name), percent(row.share)};
      if (cpu) {
        cells.insert(cells.end(),
                     {percent(row.running), percent(row.no_cpu), percent(row.blocked)});
      }
      rows.row(cells);
    }
    out_ << '\n';
    rows.print(out_);
  }

  std::string slowest_of(const first_screen& s) const {
    return s.slowest.empty() ? "" : '\n' + fitted(out_, text_of(s.slowest), "", "  ") + '\n';
  }

  std::string foot_of(const first_screen& s, bool with_whatif) const {
    const std::string between = s.slowest.empty() ? "\n" : "";
    return slowest_of(s) + (next_commands_ ? between + next_of(with_whatif, true) : "");
  }

  /// Returns the commands that the user may want to run next.
  std::string next_of(bool with_whatif, bool with_details) const {
    const std::string folder = printable_line(shell_word(d_.dir));
    const std::string dir = folder + part_options();
    std::vector<std::pair<std::string, std::string>> next;
#ifdef LOTUS_TOOL_REPORT
    next.emplace_back("lotus-tool report " + dir + " -o report.html", "the run as a web page");
#else
    next.emplace_back("lotus-tool viz " + dir + " -o trace.json", "a trace for a viewer");
#endif
    const bool is_locked = d_.is == verdict::lock_bound;
    // Without a simulation there is nothing that whatif could predict.
    if ((is_locked || !d_.predicted) && has_thread_samples(d_.dir)) {
      next.emplace_back("lotus-tool threads " + folder,
                        is_locked ? "the calls that wait" : "what each thread does");
    } else if (d_.is && with_whatif) {
      next.emplace_back("lotus-tool whatif " + dir, "predict other changes");
    }
    if (!d_.operations.empty()) {
      next.emplace_back("lotus-tool stats " + dir, "all measured values");
    } else if (with_details) {
      next.emplace_back("lotus-tool diagnose " + dir + " --details", "all measured values");
    }
    return next_commands(next, line_width(out_));
  }

  const diagnosis& d_;
  std::ostream& out_;
  bool next_commands_;
  bool details_;
};

/// Whether the verdict of a run is one of `verdicts`. `preprocessing-bound` also stands for the
/// verdicts about single stages and locks.
bool is_forbidden(const diagnosis& d, const std::vector<std::string>& verdicts) {
  if (!d.is) return false;
  const auto is_named = [&](std::string_view name) {
    return std::find(verdicts.begin(), verdicts.end(), name) != verdicts.end();
  };
  return is_named(verdict_name(*d.is)) ||
         (row_of(*d.is).of_preprocessing && is_named(verdict_name(verdict::preprocessing_bound)));
}

/// Diagnoses one run. If one of its logs is unreadable, the run gets no verdict, but the caller can
/// still diagnose the other runs.
judgement diagnose_one(const run_files& run, const diagnose_options& options,
                       diagnostic_log& diagnostics) {
  try {
    const run_data data = read_run_and_waits(run, diagnosis_parts, diagnostics);
    judgement judged = diagnose_run(data, options.skip_batches, diagnostics);
    if (judged.found) look_at_accelerators(*judged.found, data, diagnostics);
    return judged;
  } catch (const input_error& error) {
    return {std::nullopt, {"%", {name_word{error.what()}}}, nullptr};
  }
}

/// Shows what the threads of a program without markers did. Returns the exit status: there is no
/// verdict.
int diagnose_threads(const diagnose_options& options, std::ostream& out,
                     diagnostic_log& diagnostics) {
  const threads_part part = options.details ? threads_part::all : threads_part::summary;
  print_threads(read_threads(options.dir, diagnostics), part, out);
  if (options.next_commands) {
    const std::string dir = printable_line(shell_word(options.dir));
    out << '\n'
        << next_commands(
               {
                   {"lotus-tool threads " + dir, "the functions and waits of each thread"},
#ifdef LOTUS_TOOL_REPORT
                   {"lotus-tool report " + dir + " -o report.html", "flame graphs"},
#endif
               },
               line_width(out));
  }
  return options.fail_if.empty() ? exit_fine : exit_no_answer;
}

}  // namespace

int run_diagnose(const diagnose_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  std::vector<diagnosis> found;
  std::vector<run_files> runs;
  try {
    runs = find_runs(options.dir, options.prefix, diagnostics);
  } catch (const input_error&) {
    const bool is_whole = !options.json && !options.ranks && !part_to_read();
    if (!is_whole || !has_thread_samples(options.dir)) throw;
    return diagnose_threads(options, out, diagnostics);
  }
  if (options.ranks) {
    diagnose_ranks(runs, options, out, diagnostics);
    return diagnostics.finish(options.strict);
  }
  for (const run_files& run : runs) {
    judgement judged = diagnose_one(run, options, diagnostics);
    if (judged.found) {
      found.push_back(std::move(*judged.found));
    } else if (runs.size() == 1) {
      throw input_error(text_of(judged.why_not));
    } else {
      diagnostics.warning(text_of(judged.why_not));
    }
  }
  const int status = diagnostics.finish(options.strict);
  if (status != exit_fine) return status;
  if (found.empty()) throw input_error(options.dir + ": no run in it can be diagnosed");
  if (options.json) {
    print_json(one_or_more(found), out);
  } else {
    std::string_view before;
    for (const diagnosis& d : found) {
      out << before;
      screen_printer(d, out, options).print();
      before = "\n";
    }
  }
  const bool failed = std::any_of(found.begin(), found.end(), [&](const diagnosis& d) {
    return is_forbidden(d, options.fail_if);
  });
  if (failed) return exit_failed_verdict;
  const bool all_judged =
      found.size() == runs.size() &&
      std::all_of(found.begin(), found.end(), [](const diagnosis& d) { return d.is.has_value(); });
  return options.fail_if.empty() || all_judged ? exit_fine : exit_no_answer;
}

}  // namespace lotus::tool
