#include "findings/claims.hpp"

#include <algorithm>
#include <string>

#include "findings/facts/facts.hpp"
#include "model/quantities.hpp"
#include "waits/join/limiting_lock.hpp"

namespace lotus::tool {

bool shows_limit(const run_data& run, const run_blocked_on& joined, std::string_view operation,
                 std::size_t most) {
  if (operation.empty() || change_of(run, operation)) return false;
  if (!joined.processes.empty()) return lock_of(joined, operation) != nullptr;
  return most_at_once(run, operation) <= most;
}

const finding* largest_cause(const diagnosis& d) {
  const finding* most = nullptr;
  for (const finding& one : d.findings) {
    if (one.is && (most == nullptr || one.share > most->share)) most = &one;
  }
  return most;
}

bool claims::may_gain_from_building() const {
  constexpr double often = 0.15;
  const path_states steps = states_of(d_.path, path_kind::step);
  double locked = 0;  // share of the steps' blocked time
  for (const blocked_on& one : d_.blocked_on.steps.by) {
    const bool is_held = one.reason == wait_reason::lock && !one.held_by.empty();
    if (is_held && one.held_by != step_word) locked += one.share;
  }
  const bool is_suggested =
      std::any_of(d_.suggestions.begin(), d_.suggestions.end(),
                  [](const suggestion& of) { return !of.change.faster.empty(); });
  // A consumer that builds batches itself can have them built meanwhile.
  constexpr double worth_saying = 0.05;
  if (d_.makes_itself && d_.wait_share >= worth_saying) return true;
  // In simulated loaders that the consumer limits, it waits for at most 0.08 of its time.
  constexpr double waits = 0.1;
  return is_suggested || d_.wait_share >= waits || steps.queue + locked * steps.blocked > often;
}

bool claims::step_holds_lock() const {
  return d_.lock && (d_.lock->of.held_by == step_word || d_.lock->of.also_held_by == step_word);
}

bool claims::seems_service() const {
  constexpr double many_more = 1.5;
  return d_.pushed && d_.preprocessing_capacity && d_.achieved &&
         *d_.preprocessing_capacity > many_more * *d_.achieved;
}

bool claims::steps_take_the_run() const {
  const path_states steps = states_of(d_.path, path_kind::step);
  return steps.all - steps.queue >= 0.5;
}

bool claims::forbids(verdict is) const {
  if (is == verdict::prefetch_bound && seems_service()) return true;
  if (d_.pushed || d_.makes_itself || d_.waits.waits == 0) return false;
  const wait_parts& w = d_.waits;
  switch (is) {
    case verdict::balanced:
    case verdict::consumer_bound:
      return (w.share() > waits_much && (is == verdict::balanced || !steps_take_the_run())) ||
             has(forbids_balanced);
    case verdict::order_bound:
      return w.order_ns < 0.1 * w.all_ns || has(forbids_order);
    case verdict::start_up_bound:
      return w.first_ns < 0.3 * w.all_ns || w.first_ns < 0.1 * (w.all_ns + w.steps_ns);
    case verdict::hand_over_bound:
    case verdict::preprocessing_bound:
    case verdict::stage_bound:
    case verdict::lock_bound:
      break;
    case verdict::prefetch_bound:
      return has(forbids_limit);
  }
  return false;
}

bool claims::lacks_cpus() const {
  return std::any_of(d_.findings.begin(), d_.findings.end(), [](const finding& one) {
    return one.has(explains_queues) && one.has(gives_reason);
  });
}

bool claims::loses_cpus_to_unmarked() const {
  return std::any_of(d_.findings.begin(), d_.findings.end(), [](const finding& one) {
    return one.has(explains_queues) && one.is == verdict::preprocessing_bound;
  });
}

phrase claims::why_not_faster(std::string_view name) const {
  constexpr double no_share = 0.01;
  const std::string shown(name);
  const bool is_whole = name == quantity_name(quantity::preprocess);  // all operations together
  if (!is_whole && !d_.path.shares.empty() && states_of(d_.path, name).all < no_share) {
    return {"% has no share of the critical path.", {name_word{shown}}};
  }
  const auto most = std::find_if(d_.path.shares.begin(), d_.path.shares.end(), is_work);
  for (const finding& one : d_.findings) {
    const bool is_of_most = most != d_.path.shares.end() && most->name == name;
    if (one.has(forbids_faster_largest) && (is_whole || is_of_most)) return one.because;
    // The other end of a pipe does not become faster if something else does.
    if (one.has(forbids_faster_others) && !is_whole && !is_of_most) return one.because;
  }
  const blocked_on* const lock = waits_for_holder(name);
  if (lock == nullptr) return {};
  return {"% mostly waits for %, held by %: it becomes faster only if that does.",
          {name_word{shown}, name_word{lock_name(*lock)}, name_word{lock_holders(*lock)}}};
}

const blocked_on* claims::waits_for_holder(std::string_view operation) const {
  const path_states states = states_of(d_.path, operation);
  const blocked_on* const lock = lock_of(d_.blocked_on, operation);
  const bool is_other = lock != nullptr && !lock->held_by.empty() && lock->held_by != operation &&
                        lock->also_held_by != operation;
  return is_other && states.blocked * lock->share > 0.5 * states.all ? lock : nullptr;
}

bool claims::has_more_threads(const pipeline_change& change) const {
  return (change.workers && *change.workers > d_.workers && !change.own_thread) ||
         std::any_of(change.threads.begin(), change.threads.end(), [&](const auto& of) {
           const auto stage =
               std::find_if(d_.stages.begin(), d_.stages.end(),
                            [&](const stage_figures& s) { return s.name == of.first; });
           return stage == d_.stages.end() || of.second > stage->slots;
         });
}

phrase claims::why_not(const pipeline_change& change) const {
  const bool more = has_more_threads(change);
  if (more || change.cpus) {
    if (d_.lock) return lock_words(*d_.lock).add(".");
    for (const finding& one : d_.findings) {
      const bool is_simulated = one.is == verdict::start_up_bound;
      if ((more && one.has(forbids_threads) && !is_simulated) ||
          (change.cpus && one.has(explains_queues))) {
        return one.because;
      }
    }
  }
  if ((change.prefetch || change.in_flight) && has(forbids_limit)) {
    return first_with(forbids_limit, d_.findings)->because;
  }
  if (change.unordered && has(forbids_order)) {
    return first_with(forbids_order, d_.findings)->because;
  }
  if (change.step < 1 && has(forbids_faster_step)) {
    return first_with(forbids_faster_step, d_.findings)->because;
  }
  return change.faster.size() == 1 ? why_not_faster(change.faster.begin()->first) : phrase{};
}

bool claims::forbids(const pipeline_change& change) const {
  if (!why_not(change).empty()) return true;
  // More threads would wait for a CPU as well.
  if (has_more_threads(change) && d_.queued_longer_than_ran) return true;
  return has_more_threads(change) && has(forbids_threads);
}

phrase claims::why_not_simulated() const {
  if (has(forbids_simulation)) return first_with(forbids_simulation, d_.findings)->because;
  const finding* const cause = largest_cause(d_);
  return cause != nullptr && cause->is == verdict::hand_over_bound ? cause->because : phrase{};
}

bool claims::forbids_idle_machine() const {
  constexpr double few = 0.1;
  return has(explains_queues) || (d_.others_cpus && *d_.others_cpus < few * d_.cpus.value_or(0));
}

}  // namespace lotus::tool
