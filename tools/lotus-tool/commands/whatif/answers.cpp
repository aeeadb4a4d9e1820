#include "commands/whatif/answers.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>

#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "curve/curve_print.hpp"
#include "describe/described_table.hpp"
#include "describe/description.hpp"
#include "findings/gains.hpp"
#include "findings/run_limits.hpp"
#include "replay/change_text.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {
namespace {

/// Returns a sentence about how the target can be reached.
/// @param of_consumer  whether the target is the throughput that the consumer can reach.
/// @param with_start_up  the prediction for the settings that were found. Its throughput over the
///   whole run is lower than in steady state, to which the target applies.
std::string target_text(const path_to_target& way, bool of_consumer, const what_if& run,
                        const prediction& with_start_up) {
  const recorded_pipeline& pipeline = run.recorded();
  const std::string target = "Target: " + three_digits(way.target_per_s) +
                             " batches/s in steady state" +
                             (of_consumer ? " (99 % of the consumer's own limit). " : ". ");
  if (way.settings) {
    const std::string text = change_text(*way.settings, pipeline, " and ");
    return target + (text.empty() ? "Reached without a change" : "Reached with " + text) +
           (run.is_bracket(*way.settings) ? ", if there are CPUs for them" : "") +
           ". Predicted: " + three_digits(with_start_up.steady_per_s) +
           " batches/s in steady state, " + three_digits(with_start_up.per_s) +
           " batches/s over the whole run.";
  }
  const std::string best = change_text(way.best_settings, pipeline);
  const std::string workers = pipeline.has_workers() ? "workers" : "threads";
  if (way.faster <= 0) {
    return target + "Not reached, even with more " + workers +
           " and any one operation or stage made faster. " +
           (best.empty() ? "No such change alone shortens the run; the table shows it as it is."
                         : "The table shows the settings that come closest without that.");
  }
  return target + "Not reached with more " + workers + " alone. The target needs " + way.work +
         ' ' + three_digits(way.faster) + "x faster" + (best.empty() ? "" : ", and " + best) + '.';
}

/// Returns a sentence about the error of the simulation.
/// @param off  by how much the simulation of the unchanged run is too fast, relative to the run.
std::string accuracy_text(double off) {
  constexpr double exact = 0.0005;  // the smallest error that is not printed as 0
  if (std::abs(off) < exact)
    return "Check: a simulation without changes takes as long as the recorded run.";
  return "Check: a simulation without changes is " + human_share(std::abs(off)) +
         (off < 0 ? " slower" : " faster") +
         " than the recorded run. The predictions are corrected for this difference.";
}

/// An operation or stage that was simulated with several speeds.
struct faster_work {
  std::string name;
  std::map<double, const prediction*> by_speed;

  const prediction* at(double speed) const {
    const auto found = by_speed.find(speed);
    return found == by_speed.end() ? nullptr : found->second;
  }
};

/// Returns the operation or stage that is all that a change makes faster; "" if it is another kind
/// of change.
std::string work_of(const pipeline_change& change) {
  if (change.faster.size() != 1) return "";
  pipeline_change only;
  only.faster = change.faster;
  return change == only ? change.faster.begin()->first : "";
}

std::string interval_of(const prediction& of) {
  return three_digits(of.low) + " to " + three_digits(of.high);
}

const description<faster_work>& description_of(const faster_work*) {
  using w = const faster_work&;
  const auto rate_at = [](double speed) {
    return [speed](w of) {
      const prediction* const found = of.at(speed);
      return found != nullptr ? std::optional(found->per_s) : std::nullopt;
    };
  };
  static const description<faster_work> all(
      "faster_work", "",
      {
          {"", rate_at(1.25),
           "predicted throughput if calls of this operation or stage take 1/1.25 of their time",
           column{"1.25x faster", unit::three_digits, 1}},
          {"", rate_at(2), "predicted throughput if they take half their time",
           column{"2x faster", unit::three_digits}},
          {"", [](w of) { return of.at(2) != nullptr ? interval_of(*of.at(2)) : "-"; },
           "of the prediction to its left; contains the true value 9 times in 10",
           column{"90 % interval", unit::plain, 2}},
          {"", rate_at(HUGE_VAL), "predicted throughput if they take no time",
           column{"without it", unit::three_digits}},
      });
  return all;
}

/// Prints a row for each operation and stage that was simulated with several speeds.
void print_work(const std::vector<const answer*>& answers, std::ostream& out) {
  std::vector<faster_work> rows;
  for (const answer* one : answers) {
    const std::string& name = one->change.faster.begin()->first;
    const double speed = one->change.faster.begin()->second;
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&name](const faster_work& of) { return of.name == name; });
    if (row == rows.end()) row = rows.insert(row, {name, {}});
    row->by_speed[speed] = &one->would_be;
  }
  print_rows(
      "batches/s with", rows, description_of(rows.data()),
      [](const faster_work& of) { return printable_line(of.name); }, out);
}

/// Prints the changes: settings, then faster work, then what changes next to nothing.
void print_changes(const std::vector<answer>& answers, const recorded_pipeline& p,
                   std::ostream& out) {
  std::map<std::string, double> best_gain;  // by operation and stage
  for (const answer& one : answers) {
    double& best = best_gain[work_of(one.change)];
    best = std::max(best, one.would_be.gain);
  }
  std::vector<answer> settings;
  std::vector<const answer*> work;
  std::vector<std::string> nothing;
  for (const answer& one : answers) {
    const std::string name = answers.size() == 1 ? "" : work_of(one.change);
    const bool is_same = std::abs(one.would_be.gain - 1) < hardly_different && answers.size() > 1;
    if (!name.empty() && best_gain[name] >= 1 + hardly_different) {
      work.push_back(&one);
    } else if (name.empty() && !is_same) {
      settings.push_back(one);
    } else if (name.empty() || !std::isfinite(one.change.faster.begin()->second)) {
      nothing.push_back(change_text(one.change, p));
    }
  }
  if (!settings.empty()) {
    print_rows(
        "simulated change", settings, description_of(static_cast<const answer*>(nullptr)),
        [&p](const answer& a) {
          const std::string text = change_text(a.change, p);
          return printable_line(text.empty() ? "none" : text);
        },
        out);
    out << "  in flight: maximum number of batches given to workers but not yet received\n";
  }
  if (!settings.empty() && !work.empty()) out << '\n';
  if (!work.empty()) print_work(work, out);
  if (nothing.empty()) return;
  const std::string text = "Less than 1 % faster or slower: " + joined(nothing, ", ");
  out << '\n';
  print_fitted(out, printable_line(text) + '.', "", "  ");
}

}  // namespace

std::vector<std::string> assumptions_of(const whatif_answers& answers) {
  const what_if& run = *answers.run;
  const recorded_pipeline& p = run.recorded();
  std::vector<std::string> all = texts_of(answers.notes);
  if (answers.as_fast) {
    all.push_back(change_text(*answers.as_fast, p) +
                  " are about as fast: the others wait for each other");
  }
  if (!p.cpu_known) {
    if (run.law().law.cpus > 0) {
      all.emplace_back("CPU time was not recorded: all preprocessing counts as time on a CPU");
    } else {
      all.emplace_back(
          "there are enough CPUs (their number was not recorded: add --recorded-cpus N)");
      all.emplace_back("(with too few CPUs, more workers gain less than predicted, or nothing)");
    }
  } else if (run.law().law.cpus <= 0) {
    all.emplace_back("the number of CPUs is unknown (pass it with --recorded-cpus)");
  } else if (run.law().law.cpus > 1) {
    all.push_back(text_of(slowing_words(run)));
    if (!run.law().levels_seen && !answers.has_second_run) {
      all.emplace_back("(to measure it, add a run with more or fewer workers: --also DIR)");
    }
  }
  if (run.fitted() < 0.99 * run.replayed() && run.law().law.turn_ns > 0) {
    all.push_back("threads that share a CPU run in turn for " + human_time(run.law().law.turn_ns) +
                  ", and do not move to an idle CPU");
    all.push_back("without these turns, the simulation would be " +
                  human_share(run.replayed() / run.achieved() - 1) + " too fast");
  }
  if (others_used_cpus(run)) {
    all.emplace_back("other programs leave as much CPU time, or less if the run has fewer threads");
  }
  if (!answers.limit.empty()) all.push_back(text_of(answers.limit));
  if (!p.makes_itself && !p.in_flight_held) {
    all.emplace_back(
        "at least 2 batches per worker are in flight, a usual default (see --prefetch N)");
  }
  std::set<std::string> unknown;
  for (const answer& one : answers.changes) {
    if (!bound_words(one.would_be).empty()) unknown.insert(text_of(bound_words(one.would_be)));
  }
  for (const std::string& text : unknown) {
    all.push_back(text + "; the intervals include the opposite");
  }
  const std::string lock = text_of(held_lock_words(run));
  all.emplace_back("sleeps and waits for disks, networks or locks take as long as in this run");
  if (!lock.empty()) all.push_back((run.lock_held() ? "except for one lock: " : "") + lock);
  all.emplace_back(
      "if workers are added, they may wait for each other; the intervals include this");
  if (run.others_share() <= 0 && p.cpu_known) {
    all.push_back(text_of(free_cpus_words(p.others_cpus, p.cpus)));
    all.emplace_back("after its wait, a thread runs at once if a CPU is idle");
  }
  return all;
}

void print_answers(const whatif_answers& answers, std::ostream& out) {
  if (answers.curve) {
    print_curve(*answers.curve, answers.dir, out);
    return;
  }
  out << printable_line(answers.dir) << '\n';
  if (answers.run == nullptr) {
    print_fitted(out, "no predictions: " + text_of(answers.why_not));
    return;
  }
  const what_if& run = *answers.run;
  const recorded_pipeline& p = run.recorded();
  const double off = run.achieved() > 0 ? run.fitted() / run.achieved() - 1 : 0;
  out << styled(out, style::bold,
                fitted(out, "measured: " + human_time(run.run_ns()) + ", " +
                                three_digits(run.achieved()) + " batches/s"))
      << '\n'
      << fitted(out, "in steady state (from the first batch to the last): " +
                         three_digits(p.steady_per_s) + " batches/s")
      << '\n'
      << fitted_sentences(out, accuracy_text(off)) << "\n\n";
  if (others_used_cpus(run))
    out << fitted_sentences(out, "Warning: " + text_of(others_words(run, true)) + '.') << "\n\n";
  if (answers.way) {
    out << styled(out, style::bold,
                  fitted_sentences(
                      out, printable_line(target_text(*answers.way, answers.target_is_consumer, run,
                                                      answers.changes.front().would_be))))
        << "\n\n";
  }
  print_changes(answers.changes, p, out);
  note_label(out, "consumer");
  out << "\nThe predictions assume:\n";
  for (const std::string& text : assumptions_of(answers)) {
    print_sentences(out, text, "  ", "    ");
  }
}

/// The run as it is, with the simulation of it.
const description<what_if>& description_of(const what_if*) {
  static const description<what_if> all(
      "baseline", "the run as it is",
      {
          {"batches_per_s", &what_if::achieved, "measured throughput"},
          {"run_ns", &what_if::run_ns, "length of the run in ns"},
          {"steady_batches_per_s", [](const what_if& run) { return run.recorded().steady_per_s; },
           "throughput in steady state"},
          {"replayed", &what_if::replayed, "throughput of the simulation"},
          {"fitted", &what_if::fitted, "the same with the fitted time slice"},
      });
  return all;
}

const description<path_to_target>& description_of(const path_to_target*) {
  using w = const path_to_target&;
  const auto needs_work = [](w of) { return !of.settings && of.faster > 0; };
  static const description<path_to_target> all(
      "target", "how to reach a throughput; only with --target or --feed-consumer",
      {
          {"batches_per_s", [](w of) { return if_finite(of.target_per_s); },
           "the throughput to reach"},
          {"reached", [](w of) { return of.settings.has_value(); }, "whether something reaches it"},
          {"needs", &path_to_target::work, "operation or stage that would have to be faster",
           needs_work},
          {"faster", &path_to_target::faster, "by which factor", needs_work},
      });
  return all;
}

const description<recorded_pipeline>& description_of(const recorded_pipeline*) {
  using p = const recorded_pipeline&;
  const auto with_workers = [](p of) { return !of.makes_itself; };
  static const description<recorded_pipeline> all(
      "policies", "how the run's batches were distributed",
      {
          {"dispatch",
           [](p of) {
             return of.makes_itself ? "consumer" : of.round_robin ? "in turn" : "who is free";
           },
           "who gets a batch", words{{"consumer", "in turn", "who is free"}}},
          {"ordered", &recorded_pipeline::ordered, "whether the consumer takes batches in order"},
          {"batches_out",
           [](p of) { return static_cast<double>(of.in_flight) / of.items_per_batch; },
           "maximum number of batches in flight", with_workers},
          {"bound_reached", &recorded_pipeline::in_flight_held,
           "whether that bound was ever reached", with_workers},
      });
  return all;
}

const description<answer>& description_of(const answer*) {
  using a = const answer&;
  const auto predicted = [](double prediction::*value) {
    return [value](a of) { return if_finite(of.would_be.*value); };
  };
  static const description<answer> all(
      "answer", "a change and its effect",
      {
          {"", [](a of) { return human_time(of.would_be.run_ns); },
           "duration of the run, start-up included", column{"run time"}},
          {"change", &answer::change, "what differs from the recorded run"},
          {"batches_per_s", predicted(&prediction::per_s),
           "throughput of the whole run, start-up included",
           column{"batches/s", unit::three_digits}},
          {"low", predicted(&prediction::low), "lower end of its 90 % interval"},
          {"high", predicted(&prediction::high), "upper end of it"},
          {"", [](a of) { return interval_of(of.would_be) + "/s"; },
           "of the prediction to its left; contains the true value 9 times in 10",
           column{"90 % interval"}},
          {"gain", predicted(&prediction::gain), "length of the run divided by the predicted one"},
          {"", [](a of) { return three_digits(of.would_be.gain) + "x"; },
           "2x means half the run time; below 1x means slower", column{"speedup"}},
          {"run_ns", predicted(&prediction::run_ns), "predicted length in ns"},
          {"steady_batches_per_s", predicted(&prediction::steady_per_s),
           "predicted throughput in steady state"},
          {"batches_out", &answer::batches_out,
           "maximum number of batches given to workers but not yet received",
           column{"in flight", unit::three_digits, 1}},
      });
  return all;
}

const description<whatif_answers>& description_of(const whatif_answers*) {
  using w = const whatif_answers&;
  const auto answered = [](w of) { return of.run != nullptr; };
  static const description<whatif_answers> all(
      "run", "a run, or one loader of a run",
      {
          {"dir", &whatif_answers::dir, "folder of the logs"},
          {"loader", &whatif_answers::loader, "name of the loader; absent for the default loader",
           if_any},
          {"why", [](w of) { return text_of(of.why_not); },
           "why there are no answers; then nothing else is present",
           [](w of) { return of.run == nullptr; }},
          {"baseline", &whatif_answers::run, "the run as it is", if_any},
          {"target", &whatif_answers::way, "with --target or --feed-consumer",
           [](w of) { return of.run != nullptr && of.way; }},
          {"changes", &whatif_answers::changes, "one by one, or those asked for", answered},
          {"curve", &whatif_answers::curve, "with --curve, instead of changes", if_any},
          {"speed_law",
           [](w of) {
             const speed_law& law = of.run->law().law;
             std::vector<double> speeds;
             const auto max_busy = static_cast<std::size_t>(2 * std::ceil(law.cpus));
             for (std::size_t busy = 1; busy <= max_busy; ++busy) {
               speeds.push_back(law.speed(static_cast<double>(busy)));
             }
             return speeds;
           },
           "speed of each busy CPU, by the number of busy CPUs from 1 on", answered},
          {"policies", [](w of) { return &of.run->recorded(); },
           "how the run's batches were distributed", answered},
          {"assumptions", assumptions_of, "what the predictions rest on", answered},
      });
  return all;
}

}  // namespace lotus::tool
