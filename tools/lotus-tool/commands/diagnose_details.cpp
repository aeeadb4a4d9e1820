#include "commands/diagnose_details.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <ostream>

#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "findings/screen/why.hpp"
#include "findings/words.hpp"
#include "log/shown_name.hpp"
#include "model/figures.hpp"
#include "waits/stacks/unwound_stacks.hpp"

namespace lotus::tool {
namespace {

void print_checks(const diagnosis& d, std::ostream& out) {
  for (const check& c : d.checks) {
    out << styled(out, c.unsafe ? style::red : style::yellow,
                  fitted_sentences(out, shown(c), "  ", "    "))
        << '\n'
        << fitted(out, "to do: " + text_of(c.to_do), "    ", "      ") << '\n';
  }
  if (!d.checks.empty()) out << '\n';
}

void print_path_gains(const diagnosis& d, std::ostream& out) {
  if (d.path_gains.empty()) return;
  const auto share = [&](std::optional<std::int64_t> ns) {
    return ns ? human_share(static_cast<double>(*ns) / static_cast<double>(d.path.run_ns)) : "-";
  };
  cpu_columns sums;
  for (const path_gain& a : d.path_gains) {
    if (!a.path.cpu) continue;
    sums.add(static_cast<double>(a.path.cpu->cpu_ns),
             static_cast<double>(a.path.cpu->run_queue_ns.value_or(0)),
             static_cast<double>(a.path.cpu->blocked_ns.value_or(0)));
  }
  // Describes how much faster the run would be. A gain that would be printed as "1x" is no gain.
  const auto effect = [](double gain) {
    return gain < 1.005 ? "no gain" : "run " + three_digits(gain) + "x faster";
  };
  const bool any_cpu = std::any_of(d.path_gains.begin(), d.path_gains.end(),
                                   [](const path_gain& a) { return a.path.cpu.has_value(); });
  table ops;
  std::vector<std::string> head{"operation (by gain)", "% of run"};
  if (any_cpu) head.insert(head.end(), {"on CPU", "waits for CPU", "blocked"});
  head.insert(head.end(), {"if 1.25x faster", "if removed"});
  ops.row(head);
  for (const path_gain& a : d.path_gains) {
    const std::optional<cpu_split>& cpu = a.path.cpu;
    std::vector<std::string> row{printable_line(a.path.name), share(a.path.ns)};
    if (any_cpu) {
      row.insert(row.end(), {share(cpu ? std::optional(cpu->cpu_ns) : std::nullopt),
                             share(cpu ? cpu->run_queue_ns : std::nullopt),
                             share(cpu ? cpu->blocked_ns : std::nullopt)});
    }
    row.insert(row.end(), {effect(a.gain), effect(a.gain_free)});
    ops.row(row);
  }
  ops.spare(sums.smaller());
  out << '\n';
  ops.print(out);
}

/// Returns a suggestion and its note, which the first screen omits: "Helps only if CPUs are free: 4
/// workers instead of 2. The number of CPUs is not in the logs". Returns "" if there is no note.
std::string with_note(const suggestion& m) {
  if (m.note.empty()) return {};
  phrase text;
  if (m.only_if) {
    text.add("Helps only ").add(m.condition).add(": %", {name_word{m.what}});
  } else {
    text.add("also: %", {name_word{m.what}});
    if (!m.condition.empty()) text.add(", ").add(m.condition);
  }
  return text_of(text.add(m.note));
}

/// Prints the suggestions that do not fit on the first screen, and the notes of those that do.
/// @param shown  the suggestions on the first screen.
void print_moves(const diagnosis& d, const std::vector<shown_advice>& shown, std::ostream& out) {
  const auto is_shown = [&](const suggestion& m) {
    return std::any_of(shown.begin(), shown.end(),
                       [&m](const shown_advice& one) { return one.of == &m; });
  };
  std::vector<std::string> lines;
  if (!d.limit.empty()) lines.push_back(text_of(d.limit));
  for (const std::string& text : texts_of(d.assumptions)) lines.push_back("assumed: " + text);
  for (const std::vector<suggestion>* const list : {&d.suggestions, &d.possible}) {
    for (const suggestion& m : *list) {
      const bool gains = m.only_if && m.would_be.low > m.now_per_s;
      const char* const start = list == &d.suggestions ? "also: "
                                : gains                ? "may gain less: "
                                                       : "may gain nothing: ";
      suggestion unsaid = m;
      // `start` says the same as a condition that the user cannot fulfill.
      if (list == &d.possible && !m.only_if) unsaid.condition = {};
      const std::string text = is_shown(m) ? with_note(m) : start + text_of(unsaid);
      if (!text.empty()) lines.push_back(text);
    }
  }
  for (const phrase& what : not_looked_at(d)) lines.push_back("not looked at: " + text_of(what));
  for (const std::string& line : lines) {
    print_sentences(out, printable_line(line), "  ", "    ");
  }
  if (!lines.empty()) out << '\n';
}

/// Prints the shares of the critical path that do not belong to an operation or a stage.
void print_path(const diagnosis& d, std::ostream& out) {
  if (!d.path.misses.empty()) {
    out << '\n';
    print_sentences(out,
                    "No critical path is shown: the stage " + printable_line(d.path.misses) +
                        " worked for nearly all of the run, but the records lead past it.",
                    "  ", "    ");
  }
  bool any = false;
  table path;
  path.row({"time outside of operations", "% of run"});
  for (const path_share& share : d.path.shares) {
    if (is_work(share)) continue;
    any = true;
    const std::string name = path_title(share.kind, share.name);
    const double of_run = static_cast<double>(share.ns) / static_cast<double>(d.path.run_ns);
    path.row({name, human_share(of_run)});
    note_label(out, name);
  }
  if (any) out << '\n';
  if (any) path.print(out);
  if (any || !d.path_gains.empty())
    print_sentences(out,
                    "With the parts that are not shown, these shares add up to 100 %. Each moment "
                    "of the run is counted for the one thing that delayed the run then.",
                    "  ", "    ");
}

/// Prints a table of the aggregated operations. Their time is also contained in the tables that are
/// printed before this one.
void print_aggregated(const diagnosis& d, std::ostream& out) {
  if (d.aggregated.empty()) return;
  out << '\n';
  table ops;
  ops.row({"aggregated, within the above", "count", "mean", "p99", "total", "self"});
  for (const figures& of : d.aggregated) {
    ops.row({printable_line(shown_name(of.name)), std::to_string(of.time.count),
             human_time(of.time.mean_ns), human_time(of.time.p99_ns), human_time(of.time.total_ns),
             human_time(of.self_ns.value_or(0))});
  }
  ops.print(out);
}

void print_slow(const diagnosis& d, std::ostream& out) {
  const auto tell = [&out](const std::string& text) { print_fitted(out, text, "  ", "    "); };
  for (const slow_worker& w : d.slow_workers) {
    tell("slow worker (ID " + std::to_string(w.worker) + "): " + human_time(w.mean_ns) +
         " per batch" + (w.stage.empty() ? "" : " in " + printable_line(w.stage)) + ", " +
         three_digits(w.slower_than) + " times the median of the workers");
  }
  for (const slow_sample& s : d.slow_samples) tell("slow call: " + text_of(slow_call(d, s)));
}

/// If a wait is the cause of the verdict, prints the calls in which threads wait.
void print_calls(const diagnosis& d, std::ostream& out) {
  const std::string text = d.lock ? calls_of_wait(d.blocked_on, d.lock->operation, &d.lock->of)
                                  : calls_of_wait(d.blocked_on, largest_wait(d).of, nullptr);
  if (!text.empty()) out << fitted(out, text, "  ", "    ") << "\n\n";
}

}  // namespace

void print_details(const diagnosis& d, const std::vector<shown_advice>& shown, std::ostream& out) {
  out << '\n';
  print_moves(d, shown, out);
  print_calls(d, out);
  if (d.accelerators.empty()) {
    out << fitted_sentences(out,
                            "It was not recorded whether a GPU or other accelerator was busy. "
                            "To record it, see 'lotus-tool accelerator --help'.",
                            "  ", "    ")
        << "\n\n";
  }
  print_checks(d, out);
  table facts(table_form::facts);
  facts.row({"batches", std::to_string(d.batches)});
  if (d.discarded > 0) facts.row({"built and discarded", std::to_string(d.discarded)});
  if (!d.pushed) {
    if (d.workers > 0) facts.row({"maximum workers at once", std::to_string(d.workers)});
    facts.row({"consumer's waits, total", human_time(d.wait_ns)});
    facts.row(
        {"waits with a later batch ready", human_share(d.head_of_line_share) + " of the waits"});
    facts.row({"consumer's work on batches", human_time(d.step_ns)});
    // If stages build the batches, `workers` is 0. Then no thread builds a whole batch, so there
    // are no preprocess times.
    if (d.workers > 0) {
      facts.row({"preprocess time, mean", human_time(d.mean_preprocess_ns)});
      facts.row({"preprocess time, std", human_time(d.std_preprocess_ns)});
    }
  }
  if (d.cpu_ns) {
    facts.row({"CPU time of the run", human_time(*d.cpu_ns)});
    facts.row({"CPU time outside operations", human_share(d.unrecorded_cpu)});
  }
  if (d.others_cpus) {
    facts.row(
        {"CPUs of other programs, mean", three_digits(std::round(100 * *d.others_cpus) / 100) +
                                             (d.cpus ? " of " + three_digits(*d.cpus) : "")});
  }
  // The throughput in steady state is not shown next to the capacities, because it may exceed them:
  // it also counts batches that were built during the start-up.
  const auto with_samples = [&d](std::optional<double> per_s,
                                 const std::optional<rate_interval>& interval) {
    if (!per_s) return rate(per_s);
    const auto range = [&](double by) {
      const std::string low = three_digits((interval ? interval->low : *per_s) * by);
      const std::string high = three_digits((interval ? interval->high : *per_s) * by);
      return (low == high ? "" : low + " to ") + high;
    };
    return range(1) + " batches/s" +
           (d.samples_per_batch > 1 ? " (" + range(d.samples_per_batch) + " samples/s)" : "");
  };
  facts.row({"measured throughput", rate(d.achieved)});
  facts.row({d.slowest_stage.empty() ? "throughput of workers alone"
                                     : "throughput of stage " + d.slowest_stage + " alone",
             with_samples(d.preprocessing_capacity, d.preprocessing_interval)});
  if (!d.pushed) {
    facts.row(
        {"throughput of consumer alone", with_samples(d.consumer_capacity, d.consumer_interval)});
  }
  facts.print(out);
  print_path_gains(d, out);
  print_path(d, out);
  print_aggregated(d, out);
  if (!d.slow_workers.empty() || !d.slow_samples.empty()) out << '\n';
  print_slow(d, out);
}

}  // namespace lotus::tool
