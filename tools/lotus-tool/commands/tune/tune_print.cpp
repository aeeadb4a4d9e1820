#include "commands/tune/tune_print.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "findings/diagnosis_text.hpp"

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

std::string number_or_null(const std::optional<double>& value) {
  return value ? json_number(*value) : "null";
}

void write_values(json_writer& json, const search_space& space, const configuration& at) {
  json.begin_object();
  for (std::size_t k = 0; k < space.knobs().size(); ++k) {
    json.key(space.knobs()[k].name);
    const std::string& value = space.value(at, k);
    // A text such as "08" is not a number in JSON.
    const std::optional<std::size_t> number = number_of(value);
    if (number && std::to_string(*number) == value) {
      json.value(*number);
    } else {
      json.value(value);
    }
  }
  json.end_object();
}

void write_rate(json_writer& json, const std::optional<throughput>& rate) {
  json.key("batches_per_s").raw(number_or_null(rate ? std::optional(rate->per_s) : std::nullopt));
  json.key("low").raw(number_or_null(rate ? std::optional(rate->low) : std::nullopt));
  json.key("high").raw(number_or_null(rate ? std::optional(rate->high) : std::nullopt));
}

/// Returns a verdict's name without "-bound"; "" stays "".
std::string limit_name(const std::string& verdict) {
  const std::string end = "-bound";
  return ends_with(verdict, end) ? verdict.substr(0, verdict.size() - end.size()) : verdict;
}

void write_run(json_writer& json, const tune_run& run, const search_space& space) {
  json.newline().begin_object().key("values");
  write_values(json, space, run.at);
  write_rate(json, run.measured);
  json.key("predicted").raw(number_or_null(run.predicted));
  json.member("batches", run.measured ? run.measured->values : 0);
  json.key("start_up_s")
      .raw(number_or_null(run.measured ? std::optional(run.measured->start_up_s) : std::nullopt));
  json.member("seconds", run.seconds).member("bytes", run.bytes).member("cpus", run.cpus);
  json.member("other_cpus", run.other_cpus);
  json.member("dir", run.dir.empty() ? std::nullopt : std::optional(run.dir));
  json.member("fault", run.fault.empty() ? std::nullopt : std::optional(run.fault));
  json.key("notes").begin_array();
  for (const std::string& note : run.notes) json.value(note);
  json.end_array().end_object();
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
  tell("Bottleneck: " +
       (limit.empty()
            ? "unknown."
            : (limit == "balanced" ? "none (balanced)" : limit_name(limit) + " (" + limit + ')') +
                  ". For details: lotus-tool diagnose " + found.runs()[best->fastest].dir));
  tell("Search ended: " + result.ended_because + '.');
  for (const std::string& sentence : found.not_run()) tell("Not run: " + sentence + '.');
}

std::string tune_json(const tune_result& result) {
  const search& found = *result.found;
  const search_space& space = *result.space;
  const measured_configuration* const best = found.best();
  std::string text;
  json_writer json(text);
  json.begin_object().key("best");
  if (best != nullptr) {
    write_values(json, space, best->at);
  } else {
    json.value(nullptr);
  }
  write_rate(json, best == nullptr ? std::nullopt : std::optional(found.with_spread(*best)));
  json.member("decided", found.is_decided());
  json.key("runs").begin_array();
  for (const tune_run& run : found.runs()) write_run(json, run, space);
  json.newline().end_array();
  const std::string limit = best == nullptr ? "" : limit_name(found.runs()[best->fastest].limit);
  json.member("limit", limit.empty() ? std::nullopt : std::optional(limit));
  json.member("command",
              best == nullptr ? std::nullopt : std::optional(space.shell_command(best->at)));
  const measured_configuration* const rival = found.rival();
  json.key("rival");
  if (rival != nullptr) {
    write_values(json, space, rival->at);
  } else {
    json.value(nullptr);
  }
  if (result.target_per_s) {
    json.member("target_reached", best != nullptr && found.reaches_target(*best));
  }
  json.member("ended", result.ended_because).key("not_run").begin_array();
  for (const std::string& sentence : found.not_run()) json.value(sentence);
  json.end_array().end_object();
  return text;
}

}  // namespace lotus::tool
