#include "findings/decision.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "findings/facts/equal_stages.hpp"
#include "findings/finding.hpp"
#include "findings/gains.hpp"
#include "findings/run_limits.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_model.hpp"
#include "replay/prediction.hpp"
#include "replay/single_changes.hpp"
#include "threads/analysis/started_threads.hpp"

namespace lotus::tool {
namespace {

/// Returns the largest gain. If some batches or a worker are slow, more batches in flight and any
/// order gain about the same; which of the two gains more would change from run to run. Then the
/// waits decide.
bound_gain largest_or_recorded(const diagnosis& d) {
  bound_gain largest = largest_gain(d.gains);
  const bool waits_for_order = d.waits.order_ns >= 0.5 * d.waits.all_ns;
  if (largest.bound != verdict::prefetch_bound || !waits_for_order) return largest;
  const auto order = std::find_if(d.gains.begin(), d.gains.end(), [&](const bound_gain& g) {
    const double nearly = d.slow_workers.empty() ? 0.98 : 0.9;
    return g.bound == verdict::order_bound && g.gain >= nearly * largest.gain;
  });
  return order == d.gains.end() ? largest : *order;
}

/// Returns why a run that the simulation does not explain has no verdict.
/// @param unlike  how the simulation differs from the run; empty if it does not.
phrase why_no_verdict(const run_facts& f, phrase unlike) {
  constexpr double most_of_it = 0.5;
  constexpr double worth_naming = 0.25;
  if (claims(f.d).seems_service()) {
    return service_words(*f.d.preprocessing_capacity, *f.d.achieved);
  }
  const bool alone = unlike.empty();
  if (f.waits.all_ns <= 0 || f.waits.idle_ns() < most_of_it * f.waits.all_ns) {
    if (!alone) return unlike;
    // Then a finding says what this code is.
    if (f.unmarked_share >= worth_naming && f.unmarked_in) {
      return {
          "the consumer waited for data % of its time, and % of the program's CPU time is "
          "outside of all markers",
          {exact_share_word{f.d.wait_share}, share_word{f.unmarked_share}}};
    }
    return {
        "the consumer waited for data % of its time, but the logs do not show what it waited for",
        {exact_share_word{f.d.wait_share}}};
  }
  return (alone ? phrase{"no"} : unlike.add(". No")).add(when_idle(f));
}

/// Returns what has most of the critical path: the consumer's steps, or the work on batches.
/// Returns nullopt if neither has, or if nobody built a batch during much of the consumer's waits.
std::optional<verdict> largest_part(const run_facts& f, bool is_simulated) {
  const double most_of_it = is_simulated ? 0.45 : 0.6;
  const path_states steps = f.states(path_kind::step);
  // Threads without markers may be why the simulation differs from the run.
  const bool is_other = !is_simulated && f.unmarked_share >= 0.25;
  if (f.d.pushed || is_other || f.waits.idle_ns() >= 0.25 * f.waits.all_ns) return std::nullopt;
  if (steps.all - steps.queue >= most_of_it) return verdict::consumer_bound;
  const path_share* const work = f.largest_work();
  if (work_on_batches(f.path) < most_of_it) return std::nullopt;
  if (work == nullptr || work->kind != path_kind::stage) return verdict::preprocessing_bound;
  return could_all_do_more(f) ? std::nullopt : std::optional(verdict::stage_bound);
}

/// Returns the stage that has most of the critical path with its operations; "" if none has.
/// @param of  the largest gain; if its stage has much of the path, the result is "" too.
std::string stage_on_path(const what_if& asked, const run_facts& f, const bound_gain& of) {
  if (of.bound != verdict::stage_bound) return {};
  const auto stages = stages_of_operations(asked.recorded(), f.run.names);
  std::map<std::string, double> shares;
  for (const path_share& one : f.path.shares) {
    if (!is_work(one)) continue;
    const auto at = one.kind == path_kind::operation ? stages.find(one.name) : stages.end();
    shares[at == stages.end() ? one.name : at->second] += static_cast<double>(one.ns) / f.run_ns;
  }
  const auto most = most_frequent(shares);
  if (most == shares.end() || most->second <= 0.5 || shares[of.stage] >= 0.1) return {};
  return most->first;
}

/// Whether the work on batches would limit the run, although the consumer needs longer for a batch,
/// and its steps have most of the critical path.
bool is_consumer_slower(const run_facts& f, const bound_gain& largest) {
  return largest.bound == verdict::preprocessing_bound && !f.d.makes_itself &&
         f.waits.share() < 0.5 && f.states(path_kind::step).all >= 0.5 && f.d.consumer_capacity &&
         f.d.preprocessing_capacity && *f.d.consumer_capacity < *f.d.preprocessing_capacity;
}

/// Whether finished batches nearly always lie ready for the consumer, so that only a faster step
/// can make the run faster, although the workers would soon limit it.
bool is_fed(const run_facts& f) {
  const path_states steps = f.states(path_kind::step);
  return !f.d.makes_itself && !f.d.pushed && f.waits.share() < 0.05 && steps.all >= 0.9 &&
         steps.queue <= 0.15 && 10 * f.waits.ready_before >= 9 * f.waits.waits &&
         f.d.consumer_capacity && f.d.preprocessing_capacity &&
         *f.d.preprocessing_capacity >= (1 + worthwhile) * *f.d.consumer_capacity;
}

/// Whether the consumer builds the batches itself, or has them built only when it asks, for a good
/// part of the run, although its steps take longer.
bool could_build_meanwhile(const run_facts& f, const bound_gain& largest) {
  constexpr double much_of_it = 0.3;  // with less, a step that is twice as fast gains more
  return f.d.makes_itself && largest.bound == verdict::consumer_bound &&
         f.waits.share() > much_of_it;
}

/// Whether a start-up that happens only once is short, compared to the consumer's steps: in a run
/// with more batches, it would soon be nothing.
bool starts_once(const wait_parts& w) {
  return w.longest_first_ns > 0.8 * w.first_ns && w.first_ns < 0.4 * w.steps_ns;
}

}  // namespace

void decide(const what_if& asked, const claims& facts, const run_facts& f, diagnosis& d) {
  const bool simulates = facts.why_not_simulated().empty();
  // What the simulation leaves out explains why it differs from the run.
  const phrase unlike =
      simulates ? why_unlike(asked, f.unmarked_in ? words_of(*f.unmarked_in) : phrase{}) : phrase{};
  const finding* const cause = largest_cause(d);
  if (simulates && unlike.empty()) {
    d.gains = gains_of(asked);
    const bool begins_later = f.run.files->part && f.run.files->part->from_ns;
    // The part may begin in the middle of an epoch, so that what begins late in it is no start-up.
    if ((begins_later && f.run.batches.epochs().size() < 2) || starts_once(f.waits)) {
      d.gains.erase(
          std::remove_if(d.gains.begin(), d.gains.end(),
                         [](const bound_gain& of) { return of.bound == verdict::start_up_bound; }),
          d.gains.end());
    }
    bound_gain largest = largest_or_recorded(d);
    if (is_fed(f)) largest.bound = verdict::consumer_bound;
    // More batches in flight are then more threads that build, as more workers are elsewhere.
    if (largest.bound == verdict::prefetch_bound && d.thread_for_each) {
      largest.bound = verdict::preprocessing_bound;
    }
    if (could_build_meanwhile(f, largest)) largest.bound = verdict::preprocessing_bound;
    const std::string other = stage_on_path(asked, f, largest);
    const auto on_path = std::find_if(d.gains.begin(), d.gains.end(), [&](const bound_gain& g) {
      return !other.empty() && g.stage == other && g.gain >= 1 + worthwhile;
    });
    if (on_path != d.gains.end()) largest = *on_path;
    const bool is_beside_path = !other.empty() && on_path == d.gains.end();
    if (!facts.forbids(largest.bound) && !is_beside_path && !is_consumer_slower(f, largest)) {
      const bool lacks_cpus =
          (largest.bound == verdict::balanced && facts.lacks_cpus()) ||
          (largest.bound == verdict::consumer_bound && facts.loses_cpus_to_unmarked());
      const finding* const measured = first_with(decides, d.findings);
      d.is = lacks_cpus ? verdict::preprocessing_bound : largest.bound;
      if (measured != nullptr) d.is = measured->is;
      d.stage = d.is == verdict::stage_bound ? largest.stage : std::string();
      d.predicted = true;
      return;
    }
  }
  d.gains.clear();
  d.is = cause != nullptr ? cause->is : largest_part(f, unlike.empty());
  if (!d.is) {
    d.why_silent = why_no_verdict(f, unlike);
    return;
  }
  if (d.is != verdict::stage_bound) return;
  d.stage = f.largest_work()->name;
  const std::vector<pipeline_change> together = changes_of_all(equal_stages(d));
  d.predicted = simulates && unlike.empty() && !together.empty() &&
                asked.guess(together.front()).gain >= 1 + worthwhile;
}

}  // namespace lotus::tool
