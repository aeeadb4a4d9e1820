// The largest part of the path waits for something that serves only so many calls in a time.
#include <cstdint>
#include <optional>
#include <string>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "model/path/critical_path.hpp"

namespace lotus::tool {

phrase steady_rate_words(const std::string& operation, double per_s) {
  return {
      "calls of % end at a steady % per second, however many of them overlap: something serves "
      "them one after another, or allows no more of them (a rate limit)",
      {name_word{operation}, count_word{per_s}}};
}

namespace {

/// Batches without any operation, whose work mostly sleeps or waits.
std::optional<finding> rate_of_batches(const run_facts& f) {
  constexpr double mostly = 0.5;
  if (f.waits.share() < waits_much || !f.d.stages.empty() || f.run.operations > 0 ||
      f.states(path_kind::unrecorded).blocked < mostly) {
    return std::nullopt;
  }
  const std::optional<double> per_s = steady_ends_per_s(f.run, {});
  if (!per_s) return std::nullopt;
  return finding{"batches-at-a-rate",
                 {"batches end at a steady % per second, however many of them are built at once: "
                  "something serves them one after another, or allows no more of them (a rate "
                  "limit).",
                  {count_word{*per_s}}},
                 {"More workers do not help."},
                 f.states(path_kind::unrecorded).blocked,
                 verdict::preprocessing_bound,
                 gives_reason | forbids_threads};
}

}  // namespace

std::optional<finding> rate_limit(const run_facts& f) {
  const path_share* const most = f.largest_work();
  if (most == nullptr) return rate_of_batches(f);
  if (f.waits.share() < waits_much || f.run.operations > most_searched_operations) {
    return std::nullopt;
  }
  const path_states states = f.states_of(most->name);
  const double blocked = states.blocked;
  // Calls that use the CPUs, or wait for one, may end at a steady rate because of these. And the
  // others wait for a slow worker if batches are received in order.
  if (blocked < 0.3 || 2 * blocked < states.all || slow_worker_found(f) || limited_batches(f))
    return std::nullopt;
  const name_word name{most->name};
  const verdict is =
      most->kind == path_kind::stage ? verdict::stage_bound : verdict::preprocessing_bound;
  if (const std::optional<call_bursts> bursts = bursts_of(f.run, most->name)) {
    return finding{"calls-in-bursts",
                   {"% calls of % end each %, and the next ones wait: something allows no more of "
                    "them in this time (a rate limit).",
                    {count_word{bursts->size}, name, time_word{bursts->apart_ns}}},
                   {"More workers do not help: make fewer calls, such as one for several items, or "
                    "raise the limit."},
                   blocked,
                   is,
                   gives_reason | forbids_threads | forbids_faster_largest};
  }
  // Samples of a lock name it; then its holder is what to change.
  if (lock_of(f.d.blocked_on, most->name) != nullptr) return std::nullopt;
  const std::optional<double> per_s = steady_ends_per_s(f.run, most->name);
  if (!per_s) return std::nullopt;
  return finding{"calls-at-a-rate",
                 steady_rate_words(most->name, *per_s).add("."),
                 {"More workers do not help."},
                 blocked,
                 is,
                 gives_reason | forbids_threads};
}

}  // namespace lotus::tool
