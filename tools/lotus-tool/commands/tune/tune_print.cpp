#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "commands/tune/tune.hpp"
#include "curve/curve_print.hpp"
#include "describe/description.hpp"

namespace lotus::tool {
namespace {

std::string interval(const throughput& t) {
  return three_digits(t.low) + " to " + (std::isfinite(t.high) ? three_digits(t.high) : "?");
}

std::string gain_text(const tune_result& result, const measured_configuration& best) {
  const tune_run& start = result.found->runs().front();
  if (!start.measured || start.at == best.at) return "";
  return ", " + three_digits(best.rate.per_s / start.measured->per_s) + " times as fast as " +
         result.space->text(start.at);
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
  const std::string other = result.space->text(rival->at) + " with " +
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
    most = std::max(most, run.other_cpus);
  }
  if (disturbed == 0) return "";
  return "Warning: during " + std::to_string(disturbed) + (disturbed == 1 ? " run" : " runs") +
         " other programs used up to " + three_digits(most) + " of " + three_digits(cpus) +
         " CPUs. The result may be different without other programs. More runs (--runs) or longer "
         "ones (--for) make it more certain";
}

/// Returns a verdict's name without "-bound"; "" stays "".
std::string limit_name(const std::string& verdict) {
  const std::string end = "-bound";
  return ends_with(verdict, end) ? verdict.substr(0, verdict.size() - end.size()) : verdict;
}

}  // namespace

/// A run, with the names of its settings.
struct shown_run {
  const tune_run* run = nullptr;
  const search_space* space = nullptr;
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

/// Returns the values of the best settings or of their rival; nullopt if there are none.
auto settings_of(const measured_configuration* (search::*which)() const) {
  return [which](const tune_result& result) {
    const measured_configuration* const of = (result.found->*which)();
    return of == nullptr ? std::nullopt : std::optional(values_of(*result.space, of->at));
  };
}

auto best_rate(double throughput::*part) {
  return [part](const tune_result& result) {
    const measured_configuration* const best = result.found->best();
    return best == nullptr ? std::nullopt : if_finite(result.found->with_spread(*best).*part);
  };
}

auto measured(double throughput::*part) {
  return [part](const shown_run& of) {
    return of.run->measured ? if_finite((*of.run->measured).*part) : std::nullopt;
  };
}

auto if_text(std::string tune_run::*text) {
  return [text](const shown_run& of) {
    return (of.run->*text).empty() ? std::nullopt : std::optional(of.run->*text);
  };
}

template <class Value>
auto of_run(Value tune_run::*part) {
  return [part](const shown_run& of) { return of.run->*part; };
}

}  // namespace

std::string run_line(const tune_run& run, const search_space& space, std::size_t number,
                     std::size_t of) {
  std::string line = "run " + std::to_string(number) + " of at most " + std::to_string(of) + ", " +
                     space.text(run.at) + ": ";
  if (!run.measured) return line + run.fault;
  line += three_digits(run.measured->per_s) + " batches/s";
  if (run.predicted) line += " (" + three_digits(*run.predicted) + " were predicted)";
  return line;
}

void print_tune(const tune_result& result, std::ostream& out) {
  const search& found = *result.found;
  const search_space& space = *result.space;
  table runs;
  std::vector<std::string> head{"run"};
  for (const knob& k : space.knobs()) head.push_back(printable_line(k.name));
  for (const char* const name :
       {"batches/s", "90 % interval", "predicted", "peak memory", "CPUs used", "start-up"}) {
    head.emplace_back(name);
  }
  runs.row(head);
  for (std::size_t r = 0; r < found.runs().size(); ++r) {
    const tune_run& run = found.runs()[r];
    std::vector<std::string> cells{"run " + std::to_string(r + 1)};
    for (std::size_t k = 0; k < space.knobs().size(); ++k) {
      cells.push_back(printable_line(space.value(run.at, k)));
    }
    cells.push_back(run.measured ? three_digits(run.measured->per_s) : "failed");
    cells.push_back(run.measured ? interval(found.with_spread(run)) : "-");
    cells.push_back(run.predicted ? three_digits(*run.predicted) : "-");
    cells.push_back(run.bytes > 0 ? human_bytes(static_cast<double>(run.bytes)) : "-");
    cells.push_back(run.measured ? three_digits(run.cpus) : "-");
    cells.push_back(run.measured ? human_time(1e9 * run.measured->start_up_s) : "-");
    runs.row(cells);
  }
  runs.spare({"start-up", "CPUs used", "peak memory"});
  runs.print(out);
  out << '\n';
  const auto tell = [&out](const std::string& text) {
    out << fitted_sentences(out, printable_line(text), "", "  ") << '\n';
  };
  for (std::size_t r = 0; r < found.runs().size(); ++r) {
    const tune_run& run = found.runs()[r];
    const std::string begin = "Run " + std::to_string(r + 1) + ": ";
    if (!run.fault.empty()) tell(begin + run.fault + '.');
    for (const std::string& note : run.notes) tell(begin + note + '.');
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
  const std::string& limit = found.runs()[best->fastest].limit;
  const std::string& stage = found.runs()[best->fastest].stage;
  tell("Bottleneck: " +
       (limit.empty()
            ? "unknown."
            : (limit == "balanced"
                   ? "none (balanced)"
                   : limit_name(limit) + (stage.empty() ? "" : ' ' + stage) + " (" + limit + ')') +
                  ". For details: lotus-tool diagnose " +
                  printable_line(shell_word(found.runs()[best->fastest].dir))));
  tell("Search ended: " + result.ended_because + '.');
  for (const std::string& sentence : found.not_run()) tell("Not run: " + sentence + '.');
  if (!result.curve) return;
  out << '\n';
  print_curve(*result.curve, "Predicted from the first run, and measured", out);
}

const description<shown_run>& description_of(const shown_run*) {
  using r = const shown_run&;
  static const description<shown_run> all(
      "run", "one run of the program",
      {
          {"values", [](r of) { return values_of(*of.space, of.run->at); },
           "the value of each setting, by its name; whole numbers as numbers"},
          {"batches_per_s", measured(&throughput::per_s),
           "measured throughput in steady state; null if the run failed"},
          {"low", measured(&throughput::low), "lower end of its 90 % interval"},
          {"high", measured(&throughput::high),
           "upper end of the interval; null also if there are too few batches for one"},
          {"predicted", of_run(&tune_run::predicted),
           "throughput that was predicted before the run; null if there was no prediction"},
          {"batches",
           [](r of) { return of.run->measured ? of.run->measured->values : std::size_t{0}; },
           "number of batches, or of printed rates, that were counted"},
          {"start_up_s", measured(&throughput::start_up_s),
           "time from the program's start to the first counted batch"},
          {"seconds", of_run(&tune_run::seconds), "length of the run"},
          {"bytes", of_run(&tune_run::bytes),
           "maximum memory of all its processes, sampled twice a second; 0 if it ended before"},
          {"cpus", of_run(&tune_run::cpus), "mean number of CPUs that all its processes used"},
          {"other_cpus", of_run(&tune_run::other_cpus),
           "mean number of CPUs that other programs used meanwhile"},
          {"dir", if_text(&tune_run::dir), "folder of its logs; null if nothing was recorded"},
          {"fault", if_text(&tune_run::fault), "why it failed; null if it did not"},
          {"notes", of_run(&tune_run::notes),
           "what else happened, such as that the program ignored SIGTERM"},
      });
  return all;
}

const description<tune_result>& description_of(const tune_result*) {
  using t = const tune_result&;
  static const description<tune_result> all(
      "tune", "the best settings of a program, and the runs that show it",
      {
          {"best", settings_of(&search::best), "the best settings; null if every run failed"},
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
             for (const tune_run& run : of.found->runs()) runs.push_back({&run, of.space});
             return runs;
           },
           "all runs, in their order"},
          {"limit",
           [](t of) {
             const measured_configuration* const best = of.found->best();
             const std::string limit =
                 best == nullptr ? "" : limit_name(of.found->runs()[best->fastest].limit);
             return limit.empty() ? std::nullopt : std::optional(limit);
           },
           "verdict of the best settings without \"-bound\", such as \"consumer\"; null if there "
           "is none"},
          {"command",
           [](t of) {
             const measured_configuration* const best = of.found->best();
             return best == nullptr ? std::nullopt
                                    : std::optional(of.space->shell_command(best->at));
           },
           "the command with the best settings, quoted for a shell; null if every run failed"},
          {"rival", settings_of(&search::rival),
           "settings that may be faster than the best ones; null if there are none"},
          {"target_reached",
           [](t of) {
             const measured_configuration* const best = of.found->best();
             return best != nullptr && of.found->reaches_target(*best);
           },
           "whether the best settings reach --target; absent without this option",
           [](t of) { return of.target_per_s.has_value(); }},
          {"ended", &tune_result::ended_because, "why there were no more runs"},
          {"not_run", [](t of) { return of.found->not_run(); },
           "sentences about the settings that were not run"},
          {"curve", &tune_result::curve,
           "what the first run predicts for a setting, with all runs; absent without predictions",
           if_any},
      });
  return all;
}

}  // namespace lotus::tool
