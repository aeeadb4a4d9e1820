#include "commands/whatif/answers.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/labels.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "findings/diagnosis_text.hpp"
#include "findings/gains.hpp"
#include "findings/run_limits.hpp"
#include "replay/change.hpp"
#include "replay/change_text.hpp"
#include "replay/prediction.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/target.hpp"

namespace lotus::tool {
namespace {

std::string interval(const prediction& p) {
  return three_digits(p.low) + " to " + three_digits(p.high) + "/s";
}

double batches_out(const prediction& p, const recorded_pipeline& pipeline) {
  return static_cast<double>(p.max_out) / pipeline.items_per_batch;
}

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
    std::string text = change_text(*way.settings, pipeline);
    const std::size_t comma = text.rfind(", ");
    if (comma != std::string::npos) text.replace(comma, 1, " and");
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
           " and any one operation or stage made faster. The table shows the settings that come "
           "closest without that.";
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

}  // namespace

std::vector<std::string> assumptions_of(const whatif_answers& answers) {
  const what_if& run = *answers.run;
  const recorded_pipeline& p = run.recorded();
  std::vector<std::string> all;
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
    all.emplace_back(slowing_text(run));
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
  if (run.others_share() > 0) {
    all.emplace_back("other programs leave as much CPU time, or less if the run has fewer threads");
  }
  const std::string limit = limit_text(run);
  if (!limit.empty()) all.push_back(limit);
  if (!p.makes_itself && !p.in_flight_held) {
    all.emplace_back(
        "at least 2 batches per worker are in flight, a usual default (see --prefetch N)");
  }
  const std::string lock = held_lock_text(run);
  all.emplace_back("sleeps and waits for disks, networks or locks take as long as in this run");
  if (!lock.empty()) all.push_back((run.lock_held() ? "except for one lock: " : "") + lock);
  all.emplace_back(
      "if workers are added, they may wait for each other; the intervals include this");
  if (run.others_share() <= 0 && p.cpu_known) {
    all.emplace_back(free_cpus_text(p.others_cpus, p.cpus));
    all.emplace_back("after its wait, a thread runs at once if a CPU is idle");
  }
  return all;
}

void print_answers(const whatif_answers& answers, std::ostream& out) {
  out << printable_line(answers.dir) << '\n';
  if (answers.run == nullptr) {
    out << fitted(out, "no predictions: " + answers.why_not) << '\n';
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
  if (run.others_share() > 0)
    out << fitted_sentences(out, "Warning: " + others_text(run) + '.') << "\n\n";
  if (answers.way) {
    out << styled(out, style::bold,
                  fitted_sentences(
                      out, printable_line(target_text(*answers.way, answers.target_is_consumer, run,
                                                      answers.changes.front().would_be))))
        << "\n\n";
  }
  // A longer title would not leave room for this column in a terminal of 80 columns.
  const bool narrow = line_width(out) > 0 && line_width(out) < 90;
  const std::string in_flight = narrow ? "in flight" : "batches in flight";
  table changes;
  changes.row({"simulated change", "run time", "batches/s", "90 % interval", "speedup", in_flight});
  // In a narrow terminal, whole names of changes matter more than this column.
  changes.spare({in_flight});
  for (const answer& a : answers.changes) {
    const std::string text = change_text(a.change, p);
    changes.row({printable_line(text.empty() ? "none" : text), human_time(a.would_be.run_ns),
                 three_digits(a.would_be.per_s), interval(a.would_be),
                 three_digits(a.would_be.gain) + "x", three_digits(batches_out(a.would_be, p))});
  }
  changes.print(out);
  out << "  in flight: maximum number of batches given to workers but not yet received\n";
  note_label(out, "consumer");
  out << "\nThe predictions assume:\n";
  for (const std::string& text : assumptions_of(answers)) {
    out << fitted_sentences(out, text, "  ", "    ") << '\n';
  }
}

void write_answers(json_writer& json, const whatif_answers& answers) {
  json.begin_object().member("dir", answers.dir);
  if (!answers.loader.empty()) json.member("loader", answers.loader);
  if (answers.run == nullptr) {
    json.member("why", answers.why_not).end_object();
    return;
  }
  const what_if& run = *answers.run;
  const recorded_pipeline& p = run.recorded();
  json.key("baseline").begin_object().member("batches_per_s", run.achieved());
  json.member("run_ns", run.run_ns()).member("steady_batches_per_s", p.steady_per_s);
  json.member("replayed", run.replayed()).member("fitted", run.fitted()).end_object();
  if (answers.way) {
    json.key("target").begin_object().member("batches_per_s", answers.way->target_per_s);
    json.member("reached", answers.way->settings.has_value());
    if (!answers.way->settings && answers.way->faster > 0) {
      json.member("needs", answers.way->work).member("faster", answers.way->faster);
    }
    json.end_object();
  }
  json.key("changes").begin_array();
  for (const answer& a : answers.changes) {
    json.newline().begin_object().key("change");
    write_change(json, a.change);
    json.member("batches_per_s", a.would_be.per_s).member("low", a.would_be.low);
    json.member("high", a.would_be.high).member("gain", a.would_be.gain);
    json.member("run_ns", a.would_be.run_ns);
    json.member("steady_batches_per_s", a.would_be.steady_per_s);
    json.member("batches_out", batches_out(a.would_be, p)).end_object();
  }
  json.newline().end_array();
  const speed_law& law = run.law().law;
  json.key("speed_law").begin_array();
  const auto max_busy = static_cast<std::size_t>(2 * std::ceil(law.cpus));
  for (std::size_t busy = 1; busy <= max_busy; ++busy) {
    json.value(law.speed(static_cast<double>(busy)));
  }
  json.end_array().key("policies").begin_object();
  json.member("dispatch", p.makes_itself ? "consumer" : p.round_robin ? "in turn" : "who is free");
  json.member("ordered", p.ordered);
  if (!p.makes_itself) {
    json.member("batches_out", static_cast<double>(p.in_flight) / p.items_per_batch);
    json.member("bound_reached", p.in_flight_held);
  }
  json.end_object().key("assumptions").begin_array();
  for (const std::string& text : assumptions_of(answers)) json.value(text);
  json.end_array().end_object();
}

}  // namespace lotus::tool
