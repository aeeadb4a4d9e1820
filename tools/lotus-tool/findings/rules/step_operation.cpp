// Names what takes most of the consumer's steps: an operation, a function without markers, or what
// it does between epochs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "findings/facts/facts.hpp"
#include "findings/facts/outside_batches.hpp"
#include "findings/finding.hpp"
#include "findings/words.hpp"
#include "model/run_model.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

namespace {

/// Returns where the consumer's thread waits in its steps, with shares of these waits; empty if
/// too few samples show it.
phrase waits_in_steps(const run_facts& f) {
  constexpr std::uint64_t fewest = 10;
  constexpr double worth_naming = 0.15;
  constexpr std::size_t most_named = 2;
  const blocked_list& list = f.d.blocked_on.steps;
  if (list.samples < fewest) return {};
  std::map<std::string, double> places;
  for (const blocked_on& one : list.by) places[own_calls(one)] += one.share;
  std::vector<std::pair<std::string, double>> all(places.begin(), places.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  phrase text;
  for (std::size_t i = 0; i < std::min(most_named, all.size()); ++i) {
    const auto& [calls, share] = all[i];
    if (calls.empty() || share < worth_naming) break;
    text.add(text.empty() ? "the consumer's steps wait mostly in % (% of their waits)"
                          : ", and in % (%)",
             {name_word{calls}, share_word{share}});
  }
  return text.empty() ? text : text.add(".");
}

/// Returns what takes most of the time between epochs, of which there are `pauses_ns`: an
/// operation, a place where the consumer waits, or a function; "" if it is unknown.
std::string most_between_epochs(const run_facts& f, double pauses_ns) {
  constexpr double mostly = 0.5;
  constexpr std::uint64_t fewest = 10;
  const std::optional<operation_sum> most = largest_between_epochs(f.run);
  if (most && most->self_ns >= mostly * pauses_ns) return most->name;
  // What a loader with a name does not mark there may be the steps of another one.
  if (!f.run.files->loader.empty()) return {};
  const blocked_list& list = f.d.blocked_on.between_epochs;
  if (list.samples < fewest) return function_between_epochs(f.run);
  std::string place = own_calls(list.by.front());
  const double share = list.by.front().share * static_cast<double>(list.ns) / pauses_ns;
  return share >= mostly ? place : std::string();
}

}  // namespace

std::optional<finding> step_operation(const run_facts& f) {
  constexpr double most_of_it = 0.5;
  constexpr double worth_naming = 0.25;
  if (f.d.pushed || f.states(path_kind::step).all < most_of_it || f.waits.steps_ns <= 0) {
    return std::nullopt;
  }
  const std::vector<operation_sum> all = operations_in_steps(f.run);
  double marked = 0;
  for (const operation_sum& of : all) marked += of.self_ns / f.waits.steps_ns;
  phrase because;
  phrase to_do;
  // The workers must have time for it.
  const bool can_move = !f.d.makes_itself && f.d.preprocessing_capacity && f.d.consumer_capacity &&
                        *f.d.preprocessing_capacity > 1.25 * *f.d.consumer_capacity;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, all.size()); ++i) {
    const double share = all[i].self_ns / f.waits.steps_ns;
    if (share < (i == 0 ? most_of_it : worth_naming)) break;
    because.add(i == 0 ? "% takes % of the time of the consumer's steps, % per call"
                       : ", and % takes %, % per call",
                {name_word{all[i].name}, share_word{share},
                 time_word{all[i].self_ns / static_cast<double>(all[i].calls)}});
    if (i > 0 && can_move) {
      to_do = {"If one of them prepares data, let the threads that build batches do it."};
    }
  }
  // If the steps hardly use the CPU, samples from just before or after them may be more.
  const path_states steps = f.states(path_kind::step);
  const bool on_cpu = steps.cpu >= worth_naming * steps.all;
  const std::string function = 1 - marked < worth_naming || !on_cpu ? "" : function_in_steps(f.run);
  if (!because.empty()) {
    because.add(".");
    if (!function.empty()) {
      because.add(" % of this time is outside of all operations, mostly in %.",
                  {share_word{1 - marked}, name_word{function}});
    }
  }
  const bool waits = 2 * steps.blocked >= steps.all && f.waits.share() < waits_much;
  if (because.empty() && waits) because = waits_in_steps(f);
  if (because.empty() && !function.empty()) {
    because = {"the consumer's steps use the CPU mostly in %.", {name_word{function}}};
  }
  if (because.empty()) return std::nullopt;
  return finding{"step-operation", std::move(because), std::move(to_do)};
}

std::optional<finding> pauses_between_epochs(const run_facts& f) {
  constexpr double worth_naming = 0.1;
  // The time between two epochs contains the step of a batch.
  const double step_ns =
      f.waits.steps_ns / static_cast<double>(std::max<std::size_t>(1, f.d.received));
  double sum_ns = 0;
  double pauses = 0;
  for (const epoch_times& of : f.run.batches.epochs()) {
    if (f.d.pushed || !of.between_ns) continue;
    sum_ns += std::max(0.0, static_cast<double>(*of.between_ns) - step_ns);
    ++pauses;
  }
  if (sum_ns < worth_naming * f.run_ns) return std::nullopt;
  const std::string most = most_between_epochs(f, sum_ns);
  constexpr double most_of_it = 0.5;
  const double share = sum_ns / f.run_ns;
  constexpr std::string_view id = "pauses-between-epochs";
  // A loader with a name is often one of several, whose batches are received meanwhile.
  if (most.empty() && !f.run.files->loader.empty()) {
    if (share < most_of_it) return std::nullopt;
    return finding{id,
                   {"between its epochs, the consumer did something else for % in all (% of the "
                    "run), perhaps with batches of another loader.",
                    {time_word{sum_ns}, share_word{share}}},
                   {},
                   share};
  }
  phrase because{
      "between the last batch of an epoch and the wait for the first of the next, the consumer did "
      "something else",
      {}};
  if (!most.empty()) because.add(" (mostly %)", {name_word{most}});
  because.add(" for % in all", {time_word{sum_ns}});
  if (pauses > 1) because.add(", % each", {time_word{sum_ns / pauses}});
  because.add(", which is % of the run and not in the critical path.", {share_word{share}});
  finding found{
      id, std::move(because), {"Do it once, or during the epoch on another thread."}, share};
  constexpr double much = 0.3;
  if (share >= much && sum_ns >= 2 * f.waits.all_ns) {
    found.is = verdict::consumer_bound;
    found.effects = gives_reason;
    // Other pauses may be waits for somebody who begins the next epoch.
    if (!most.empty()) found.effects |= decides;
  }
  return found;
}

}  // namespace lotus::tool
