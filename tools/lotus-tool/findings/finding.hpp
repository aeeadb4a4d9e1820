// A finding: one statement about a run, with its evidence and what to do about it.
#ifndef LOTUS_TOOL_FINDINGS_FINDING_HPP
#define LOTUS_TOOL_FINDINGS_FINDING_HPP

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "findings/verdict.hpp"
#include "findings/words.hpp"

namespace lotus::tool {

struct run_facts;
struct limiting_lock;
struct blocked_on;
struct idle_workers;

/// What else holds while a finding does; finding::effects has a sum of these.
enum finding_effect : unsigned {
  /// Its evidence takes the place of what the simulation would say about the verdict.
  gives_reason = 1U << 0U,
  /// More threads cannot help.
  forbids_threads = 1U << 1U,
  /// Waits for a CPU have this cause, so that other programs are not to blame.
  explains_queues = 1U << 2U,
  /// The operation or stage with the largest share of the critical path cannot become faster.
  forbids_faster_largest = 1U << 3U,
  /// No operation or stage helps by becoming faster, except the one with the largest share.
  forbids_faster_others = 1U << 4U,
  /// The consumer's step becomes faster only if what it waits for does.
  forbids_faster_step = 1U << 5U,
  /// The simulation does not know what was found, so it can predict nothing.
  forbids_simulation = 1U << 6U,
  /// The threads that build batches do limit the run, even if the consumer rarely waits.
  forbids_balanced = 1U << 7U,
  /// It says for which lock work on batches waits.
  names_lock = 1U << 8U,
  /// More threads may not help, because one of them is slow.
  doubts_threads = 1U << 9U,
  /// No limit of batches in flight holds the workers back.
  forbids_limit = 1U << 10U,
  /// A prediction says the same, and more exactly.
  replaces_prediction = 1U << 11U,
  /// Of interest only if the threads that build batches limit the run.
  explains_building = 1U << 12U,
  /// Batches in any order would not be received earlier.
  forbids_order = 1U << 13U,
  /// It was measured that this limits the run, which the simulation leaves out.
  decides = 1U << 14U,
};

struct finding {
  finding(std::string_view the_id, phrase evidence, phrase advice = {}, double share_of_run = 0,
          std::optional<verdict> limit = {}, unsigned also = 0)
      : id(the_id),
        because(std::move(evidence)),
        to_do(std::move(advice)),
        share(share_of_run),
        is(limit),
        effects(also) {}

  bool has(finding_effect effect) const noexcept { return (effects & effect) != 0; }

  std::string_view id;        ///< identifier in JSON, such as "wait-contains-work"
  phrase because;             ///< the evidence
  phrase to_do;               ///< one change
  double share;               ///< share (0..1) of the run's time that it explains
  std::optional<verdict> is;  ///< what it says limits the run; nullopt: it only explains
  std::string_view title;     ///< more exact than the title of the verdict; empty: there is none
  unsigned effects;           ///< sum of finding_effect
};

/// Returns the first finding with this effect; nullptr if there is none.
const finding* first_with(finding_effect effect, const std::vector<finding>& findings);

/// A rule looks at the facts of a run. It returns nothing unless they show what it is about.
using finding_rule = std::optional<finding>(const run_facts& facts);

/// Returns the findings about a run, in the order in which they are printed.
std::vector<finding> find_all(const run_facts& facts);

/// Returns what follows the word "no" in the evidence that nobody built batches while the consumer
/// waited, without final period.
phrase when_idle(const run_facts& f);

/// Returns the share (0..1) of the run in which nobody built a batch that the consumer waited for;
/// 0 if it is small, or if another finding explains it.
double share_without_builder(const run_facts& f);

/// Returns that the calls of an operation end at a steady rate, without final period.
phrase steady_rate_words(const std::string& operation, double per_s);

/// Returns whether idle workers begin batches when the consumer receives none, so that no limit of
/// batches in flight held them back.
bool is_unlimited(const idle_workers& idle);

/// The rules; rules.cpp lists them in order.
finding_rule worker_ended_early, thread_for_each_batch, batches_pile_up, worked_outside_markers,
    parts_in_sequence, several_consumers;
finding_rule buffer_filled_first, wait_contains_work, wait_polls, wait_for_cpu, wait_spins,
    wait_of_fixed_time, slow_hand_over, refilled_in_windows, passed_on_together;
finding_rule cpu_limit, pinned_threads, unmarked_threads, time_in_kernel;
finding_rule step_waits_for_lock, perhaps_a_lock, waits_for_one_pipe, waits_for_many_pipes,
    time_changes, slow_worker_found;
finding_rule workers_start_anew, workers_start_again, waits_at_start, waits_while_built,
    waits_for_order;
finding_rule step_waits_for_cpu, steps_take_the_run, step_operation, forked_batches,
    pauses_between_epochs;
finding_rule work_outside_operations, work_between_batches, built_on_demand, nobody_builds,
    rate_limit, waits_for_few, limited_batches;
finding_rule equally_slow_stages, threads_sleep, workers_begin_late, workers_ended,
    workers_wait_for_consumer;

/// The words about a lock that limits a run, and what to do about it.
phrase lock_words(const limiting_lock& lock);
phrase lock_advice(const blocked_on& lock);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FINDING_HPP
