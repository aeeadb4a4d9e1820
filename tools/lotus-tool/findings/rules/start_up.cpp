// The consumer waits mostly for the first batches of epochs.
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "findings/facts/facts.hpp"
#include "findings/facts/outside_batches.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// A start that is a smaller part of the run does not limit it.
constexpr double worth_a_verdict = 0.12;

bool is_start_up(const run_facts& f) {
  const wait_parts& w = f.waits;
  return !f.d.pushed && !f.d.makes_itself && w.share() >= waits_much &&
         w.first_ns >= 0.5 * w.all_ns && !buffer_filled_first(f);
}

/// Whether no thread that built batches of one epoch built batches of the next.
bool are_new_threads(const run_facts& f) {
  std::map<std::uint32_t, std::set<std::uint64_t>> builders;
  for (const batch& b : f.run.batches.all()) {
    for (span_number n = b.first_span; n < b.first_span + b.spans; ++n) {
      const preprocessing_span& s = f.run.batches.preprocessing_spans()[n];
      if (s.file) builders[b.epoch].insert(f.run.log(*s.file).number);
    }
  }
  for (auto at = builders.begin(); at != builders.end(); ++at) {
    const auto next = std::next(at);
    if (next == builders.end()) break;
    for (const std::uint64_t thread : at->second) {
      if (next->second.count(thread) != 0) return false;
    }
  }
  return builders.size() > 1;
}

/// Adds what was done before the first batches, if that was recorded and is most of the wait.
phrase with_operation(phrase because, const run_facts& f) {
  const std::optional<operation_sum> of = largest_at_start(f.run);
  if (!of || of->self_ns < 0.5 * f.waits.first_ns) {
    const std::string function = function_in_first_waits(f);
    if (function.empty()) return because;
    return because.add(" Meanwhile, the program used a CPU mostly in %.", {name_word{function}});
  }
  because.add(" Before that, % takes %",
              {name_word{of->name}, time_word{of->self_ns / static_cast<double>(of->calls)}});
  if (of->calls > 1) because.add(", % times", {count_word{of->calls}});
  return because.add(".");
}

double share_of(const wait_parts& w) {
  return w.first_ns / (w.all_ns + w.steps_ns);
}

}  // namespace

std::optional<finding> workers_start_anew(const run_facts& f) {
  if (!is_start_up(f) || f.waits.epochs < 2 || !are_new_threads(f)) return std::nullopt;
  // The first epoch alone may have the long start.
  if (f.waits.longest_first_ns > 0.6 * f.waits.first_ns) return std::nullopt;
  return finding{
      "workers-start-anew",
      with_operation(
          {"of the % that the consumer waited, % were for the first batches of % "
           "epochs: each epoch starts new workers.",
           {time_word{f.waits.all_ns}, time_word{f.waits.first_ns}, count_word{f.waits.epochs}}},
          f),
      {"Keep the workers between epochs."},
      share_of(f.waits),
      verdict::start_up_bound,
      gives_reason | forbids_threads};
}

std::optional<finding> workers_start_again(const run_facts& f) {
  constexpr std::size_t often = 3;
  const wait_parts& w = f.waits;
  const idle_workers& idle = f.idle;
  const bool is_much =
      idle.starting_ns >= 0.15 * (w.all_ns + w.steps_ns) && idle.starting_ns >= 0.6 * w.idle_ns();
  // Threads that build one batch each are another habit.
  const bool few = 3 * idle.started <= f.run.batches.all().size();
  if (f.d.pushed || f.d.makes_itself || !is_much || !few || idle.starts < often) {
    return std::nullopt;
  }
  return finding{
      "workers-start-again",
      {"of the % that the consumer waited, % passed until new workers began their first batches, "
       "% times: % threads or processes were started during the run.",
       {time_word{w.all_ns}, time_word{idle.starting_ns}, count_word{idle.starts},
        count_word{idle.started}}},
      {"Keep the workers alive instead of starting new ones."},
      idle.starting_ns / (w.all_ns + w.steps_ns),
      verdict::start_up_bound,
      gives_reason | forbids_threads | forbids_simulation};
}

std::optional<finding> waits_at_start(const run_facts& f) {
  if (!is_start_up(f)) return std::nullopt;
  phrase because{"of the % that the consumer waited, % were for the first batch",
                 {time_word{f.waits.all_ns}, time_word{f.waits.first_ns}}};
  constexpr double nearly_all = 0.8;
  if (f.waits.epochs != 1) {
    const bool is_one = f.waits.longest_first_ns >= nearly_all * f.waits.first_ns;
    because.add(is_one ? " of one of % epochs" : " of % epochs, each",
                {count_word{f.waits.epochs}});
  }
  return finding{
      "start-up",
      with_operation(std::move(because.add(".")), f),
      {},
      share_of(f.waits),
      share_of(f.waits) >= worth_a_verdict ? std::optional(verdict::start_up_bound) : std::nullopt,
      share_of(f.waits) >= worth_a_verdict ? gives_reason | forbids_threads : 0U};
}

}  // namespace lotus::tool
