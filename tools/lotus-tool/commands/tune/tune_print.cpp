#include <algorithm>
#include <cmath>
#include <csignal>
#include <thread>
#include <variant>

#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "commands/tune/tune.hpp"
#include "curve/curve_print.hpp"
#include "describe/described_table.hpp"

namespace lotus::tool {
namespace {

std::string interval(const throughput& t) {
  return three_digits(t.low) + " to " + (std::isfinite(t.high) ? three_digits(t.high) : "?");
}

std::string signal_name(int signal) {
  constexpr std::pair<int, const char*> known[] = {{SIGINT, "SIGINT"},
                                                   {SIGTERM, "SIGTERM"},
                                                   {SIGKILL, "SIGKILL"},
                                                   {SIGSEGV, "SIGSEGV"},
                                                   {SIGABRT, "SIGABRT"}};
  for (const auto& [number, name] : known) {
    if (number == signal) return name;
  }
  return "signal " + std::to_string(signal);
}

/// Returns why a run was not measured; "" if it was.
std::string fault_of(const tune_run& run) {
  const trial_result& trial = run.trial;
  const std::string time = human_time(1e9 * trial.seconds);
  const std::string& last = trial.printed.last_line;
  switch (run.fault) {
    case run_fault::none:
      break;
    case run_fault::not_started:
      return run.why_not_started;
    case run_fault::reads_terminal:
      return "stopped, because it reads from a terminal, and runs have none";
    case run_fault::failed:
      return "ended after " + time + " with " +
             (trial.end.by_signal ? signal_name(trial.end.status - 128)
                                  : "exit status " + std::to_string(trial.end.status)) +
             (trial.end.status == 128 + SIGKILL ? ", perhaps because memory ran out" : "") +
             (last.empty() ? "" : "; it printed last: " + printable_line(last));
    case run_fault::no_records:
      return "recorded nothing in " + time +
             "; perhaps the program executed no marker such as LOTUS_SCOPE; --metric reads the "
             "throughput from its output instead";
    case run_fault::no_batches:
      return "recorded no batch in " + time + ": " + text_of(run.why_no_batches);
    case run_fault::few_batches:
      return "fewer than " + std::to_string(min_counted) + " batches in " + time +
             "; --for gives it more time";
    case run_fault::no_rate:
      return "none of the " + std::to_string(trial.printed.lines) +
             " lines that it printed matches --metric; a program that prints to a pipe may "
             "hold its lines back until it ends (stdbuf -oL or python -u prevents that)";
  }
  return "";
}

/// Returns what else the user should know about a run.
std::vector<std::string> notes_of(const tune_run& run) {
  const trial_result& trial = run.trial;
  std::vector<std::string> notes;
  if (trial.killed) notes.emplace_back("ignored SIGTERM and was killed");
  if (trial.outlived > 0) {
    notes.push_back(counted(trial.outlived, "process", "processes") +
                    " outlived the program, and were ended");
  }
  if (trial.unkillable > 0) {
    notes.push_back(std::to_string(trial.unkillable) + " processes could not be ended");
  }
  if (run.records.dropped > 0) notes.push_back(dropped_text(run.records));
  if (run.records.lost > 0) notes.push_back(lost_text(run.records.lost));
  return notes;
}

/// Returns why there were no more runs.
std::string end_of(const tune_result& result) {
  constexpr const char* words[] = {
      "the first run failed; --start chooses other values for it", "the only run is done",
      "every configuration was run", "the target is reached",
      "no other configuration is predicted to be over 3 % faster than the best"};
  const std::optional<search_end> end = result.found->ended();
  if (!end) return "interrupted by " + signal_name(result.interrupted_by);
  const std::size_t runs = result.found->runs().size();
  return *end == search_end::runs_used_up && runs > 1
             ? "all " + std::to_string(runs) + " runs are done"
             : words[static_cast<std::size_t>(*end)];
}

/// Returns sentences about the configurations that were not run.
std::vector<std::string> left_out(const search& found) {
  const configurations_left left = found.left();
  const auto configurations = [](std::size_t n) {
    return counted(n, "configuration", "configurations");
  };
  std::vector<std::string> sentences;
  if (left.predicted > 0) {
    sentences.push_back(configurations(left.predicted) + ", predicted to reach at most " +
                        three_digits(*left.best.predicted) + " batches/s (" +
                        found.space().text(left.best.at) + ")");
  }
  if (left.unknown > 0) {
    const std::string why = left.predictions_hold ? text_of(left.why_unknown)
                                                  : "predictions were off by more than 20 % twice";
    sentences.push_back(configurations(left.unknown) +
                        ", which the search did not reach and could not predict" +
                        (why.empty() ? "" : " (" + why + ")"));
  }
  return sentences;
}

std::string gain_text(const tune_result& result, const measured_configuration& best) {
  const tune_run& start = result.found->runs().front();
  if (!start.measured || start.at == best.at) return "";
  return ", " + three_digits(best.rate.per_s / start.measured->per_s) + " times as fast as " +
         result.found->space().text(start.at);
}

/// Returns a sentence about how reliable the result is.
std::string how_sure(const tune_result& result, const measured_configuration& best) {
  const measured_configuration* const rival = result.found->rival();
  const std::string runs = best.runs == 1 ? "from one run; other runs may differ by more"
                                          : "from its " + std::to_string(best.runs) + " runs";
  std::string text =
      interval(result.found->with_spread(best)) + " batches/s with 90 % confidence (" + runs + ")";
  if (result.found->measured().size() == 1) return text;
  if (rival == nullptr) return text + ". Every other configuration that ran is slower";
  const std::string other = result.found->space().text(rival->at) + " with " +
                            interval(result.found->with_spread(*rival)) + " batches/s";
  if (result.found->is_decided()) {
    return text + ". The configuration " + other + " is at most 5 % faster, and may be slower";
  }
  return "There is no clear winner between this configuration and " + other +
         ". Longer runs (--for) or more runs (--runs) can decide. The chosen configuration "
         "reaches " +
         text;
}

/// Returns a warning if other programs used so much CPU time that they may have disturbed runs.
std::string disturbance(const std::vector<tune_run>& runs) {
  const auto cpus = static_cast<double>(std::max(1U, std::thread::hardware_concurrency()));
  double most = 0;
  std::size_t disturbed = 0;
  for (const tune_run& run : runs) {
    if (!run.measured || !search::is_disturbed(run)) continue;
    ++disturbed;
    most = std::max(most, run.trial.other_cpus);
  }
  if (disturbed == 0) return "";
  return "Warning: during " + counted(disturbed, "run", "runs") + " other programs used up to " +
         three_digits(most) + " of " + three_digits(cpus) +
         " CPUs. The result may be different without other programs. More runs (--runs) or longer "
         "ones (--for) make it more certain";
}

/// Returns a verdict's name without "-bound".
std::string_view limit_name(verdict is) {
  const std::string_view name = verdict_name(is);
  return name.substr(0, name.rfind("-bound"));
}

}  // namespace

/// A run, and the search that it belongs to.
struct shown_run {
  const tune_run* run = nullptr;
  const search* found = nullptr;
};

namespace {

/// Whole numbers are numbers in JSON. A text such as "08" is not.
using setting_values = std::vector<std::pair<std::string, std::variant<std::size_t, std::string>>>;

setting_values values_of(const search_space& space, const configuration& at) {
  setting_values values;
  for (std::size_t k = 0; k < space.knobs().size(); ++k) {
    const std::string& value = space.value(at, k);
    auto& [name, shown] = values.emplace_back(space.knobs()[k].name, value);
    const std::optional<std::size_t> number = number_of(value);
    if (number && std::to_string(*number) == value) shown = *number;
  }
  return values;
}

/// Returns what `get` returns for the best settings or for their rival; nothing if there are none.
template <class Get>
auto of_settings(const measured_configuration* (search::*which)() const, Get get) {
  return [which, get](const tune_result& result) {
    const search& found = *result.found;
    const measured_configuration* const of = (found.*which)();
    return of == nullptr ? decltype(get(found, *of))() : get(found, *of);
  };
}

auto best_rate(double throughput::*part) {
  return of_settings(&search::best, [part](const search& found, const auto& best) {
    return if_finite(found.with_spread(best).*part);
  });
}

/// Returns what `get` returns for a run that was measured; nothing for others.
template <class Get>
auto if_measured(Get get) {
  return [get](const shown_run& of) {
    return of.run->measured ? get(of, *of.run->measured) : decltype(get(of, *of.run->measured))();
  };
}

auto measured(double throughput::*part) {
  return if_measured([part](const auto&, const throughput& of) { return if_finite(of.*part); });
}

template <class Value>
auto of_trial(Value trial_result::*part) {
  return [part](const shown_run& of) { return of.run->trial.*part; };
}

std::optional<std::string> if_any_text(std::string text) {
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

}  // namespace

const description<shown_run>& description_of(const shown_run*) {
  using r = const shown_run&;
  static const description<shown_run> all(
      "run", "one run of the program",
      {
          {"values", [](r of) { return values_of(of.found->space(), of.run->at); },
           "the value of each setting, by its name; whole numbers as numbers"},
          {"batches_per_s", measured(&throughput::per_s),
           "measured throughput in steady state; null if the run failed",
           column{"batches/s", unit::three_digits, 0, "failed"}},
          {"low", measured(&throughput::low), "lower end of its 90 % interval"},
          {"high", measured(&throughput::high),
           "upper end of the interval; null also if there are too few batches for one"},
          {"", if_measured([](r of, const throughput&) {
             return std::optional(interval(of.found->with_spread(*of.run)));
           }),
           "90 % interval that contains how much runs differ", column{"90 % interval"}},
          {"predicted", [](r of) { return of.run->predicted; },
           "throughput that was predicted before the run; null if there was no prediction",
           column{"predicted", unit::three_digits}},
          {"batches", if_measured([](r, const throughput& of) { return of.values; }),
           "number of batches, or of printed rates, that were counted"},
          {"start_up_s", measured(&throughput::start_up_s),
           "time from the program's start to the first counted batch"},
          {"seconds", of_trial(&trial_result::seconds), "length of the run"},
          {"bytes", of_trial(&trial_result::bytes),
           "maximum memory of all its processes, sampled twice a second; 0 if it ended before"},
          {"",
           [](r of) {
             const std::uint64_t bytes = of.run->trial.bytes;
             return bytes > 0 ? std::optional(bytes) : std::nullopt;
           },
           "maximum memory of all processes", column{"peak memory", unit::bytes, 3}},
          {"cpus", of_trial(&trial_result::cpus),
           "mean number of CPUs that all its processes used"},
          {"",
           if_measured([](r of, const throughput&) { return std::optional(of.run->trial.cpus); }),
           "mean number of CPUs that all its processes used",
           column{"CPUs used", unit::three_digits, 2}},
          {"",
           if_measured([](r, const throughput& of) { return std::optional(1e9 * of.start_up_s); }),
           "time from the program's start to the first counted batch",
           column{"start-up", unit::time_ns, 1}},
          {"other_cpus", of_trial(&trial_result::other_cpus),
           "mean number of CPUs that other programs used meanwhile"},
          {"dir", [](r of) { return if_any_text(of.run->dir); },
           "folder of its logs; null if nothing was recorded"},
          {"fault", [](r of) { return if_any_text(fault_of(*of.run)); },
           "why it failed; null if it did not"},
          {"notes", [](r of) { return notes_of(*of.run); },
           "what else happened, such as that the program ignored SIGTERM"},
      });
  return all;
}

const description<tune_result>& description_of(const tune_result*) {
  using t = const tune_result&;
  const auto shown_values = [](const search& found, const measured_configuration& of) {
    return std::optional(values_of(found.space(), of.at));
  };
  static const description<tune_result> all(
      "tune", "the best settings of a program, and the runs that show it",
      {
          {"best", of_settings(&search::best, shown_values),
           "the best settings; null if every run failed"},
          {"batches_per_s", best_rate(&throughput::per_s),
           "measured throughput of the best settings in steady state; null if every run failed"},
          {"low", best_rate(&throughput::low),
           "lower end of the 90 % interval of batches_per_s, which contains how much runs differ"},
          {"high", best_rate(&throughput::high),
           "upper end of the interval; null also if there are too few batches for one"},
          {"decided", [](t of) { return of.found->is_decided(); },
           "whether no settings that ran are likely to be faster than the best ones by more than "
           "5 %"},
          {"runs",
           [](t of) {
             std::vector<shown_run> runs;
             for (const tune_run& run : of.found->runs()) runs.push_back({&run, of.found});
             return runs;
           },
           "all runs, in their order"},
          {"limit",
           of_settings(&search::best,
                       [](const search& found, const auto& best) {
                         const std::optional<verdict> is = found.runs()[best.fastest].limit;
                         return is ? std::optional(limit_name(*is)) : std::nullopt;
                       }),
           "verdict of the best settings without \"-bound\", such as \"consumer\"; null if there "
           "is none"},
          {"command",
           of_settings(&search::best,
                       [](const search& found, const auto& best) {
                         return std::optional(found.space().shell_command(best.at));
                       }),
           "the command with the best settings, quoted for a shell; null if every run failed"},
          {"rival", of_settings(&search::rival, shown_values),
           "settings that may be faster than the best ones; null if there are none"},
          {"target_reached",
           [](t of) {
             const measured_configuration* const best = of.found->best();
             return best != nullptr && of.found->reaches_target(*best);
           },
           "whether the best settings reach --target; absent without this option",
           [](t of) { return of.target_per_s.has_value(); }},
          {"ended", end_of, "why there were no more runs"},
          {"not_run", [](t of) { return left_out(*of.found); },
           "sentences about the settings that were not run"},
          {"curve", &tune_result::curve,
           "what the first run predicts for a setting, with all runs; absent without predictions",
           if_any},
      });
  return all;
}

std::string run_line(const search& found, std::size_t of) {
  const tune_run& run = found.runs().back();
  std::string line = "run " + std::to_string(found.runs().size()) + " of at most " +
                     std::to_string(of) + ", " + found.space().text(run.at) + ": ";
  if (!run.measured) return line + fault_of(run);
  line += three_digits(run.measured->per_s) + " batches/s";
  if (run.predicted) line += " (" + three_digits(*run.predicted) + " were predicted)";
  return line;
}

void print_tune(const tune_result& result, std::ostream& out) {
  const search& found = *result.found;
  const search_space& space = found.space();
  const auto columns = columns_of(description_of(static_cast<const shown_run*>(nullptr)));
  std::vector<std::string> settings;
  for (const knob& k : space.knobs()) settings.push_back(printable_line(k.name));
  table runs = table_with("run", columns, settings);
  for (std::size_t r = 0; r < found.runs().size(); ++r) {
    const shown_run run{&found.runs()[r], &found};
    for (std::size_t k = 0; k < settings.size(); ++k) settings[k] = space.value(run.run->at, k);
    runs.row(row_of("run " + std::to_string(r + 1), &run, columns, settings));
  }
  runs.print(out);
  out << '\n';
  const auto tell = [&out](const std::string& text) {
    print_sentences(out, printable_line(text), "", "  ");
  };
  for (std::size_t r = 0; r < found.runs().size(); ++r) {
    const tune_run& run = found.runs()[r];
    const std::string begin = "Run " + std::to_string(r + 1) + ": ";
    if (run.fault != run_fault::none) tell(begin + fault_of(run) + '.');
    for (const std::string& note : notes_of(run)) tell(begin + note + '.');
  }
  const std::string disturbed = disturbance(found.runs());
  if (!disturbed.empty()) tell(disturbed + '.');
  const measured_configuration* const best = found.best();
  if (best == nullptr) {
    tell("No run was measured.");
    return;
  }
  out << styled(out, style::bold,
                fitted(out, printable_line("Best: " + space.text(best->at) + ": " +
                                           three_digits(best->rate.per_s) + " batches/s" +
                                           gain_text(result, *best))))
      << '\n';
  // The command is not wrapped, so that the user can copy it.
  out << "Command: " << printable_line(space.shell_command(best->at)) << '\n';
  if (result.target_per_s) {
    tell("Target: " + three_digits(*result.target_per_s) + " batches/s is " +
         (found.reaches_target(*best) ? "reached." : "not reached."));
  }
  tell("Certainty: " + how_sure(result, *best) + '.');
  const tune_run& fastest = found.runs()[best->fastest];
  if (!fastest.limit) {
    tell("Bottleneck: unknown.");
  } else {
    std::string limit(limit_name(*fastest.limit));
    if (*fastest.limit == verdict::balanced) limit = "none";
    if (!fastest.stage.empty()) limit += ' ' + fastest.stage;
    tell("Bottleneck: " + limit + " (" + std::string(verdict_name(*fastest.limit)) +
         "). For details: lotus-tool diagnose " + printable_line(shell_word(fastest.dir)));
  }
  tell("Search ended: " + end_of(result) + '.');
  for (const std::string& sentence : left_out(found)) tell("Not run: " + sentence + '.');
  if (!result.curve) return;
  out << '\n';
  print_curve(*result.curve, "Predicted from the first run, and measured", out);
}

}  // namespace lotus::tool
