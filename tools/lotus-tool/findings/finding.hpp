// A finding: one statement about a run, with its evidence and what to do about it.
#ifndef LOTUS_TOOL_FINDINGS_FINDING_HPP
#define LOTUS_TOOL_FINDINGS_FINDING_HPP

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "findings/verdict.hpp"
#include "findings/words.hpp"

namespace lotus::tool {

struct run_facts;

/// What else holds while a finding does; a finding has a sum of these.
inline constexpr unsigned gives_reason = 1;     ///< finding::instead
inline constexpr unsigned forbids_threads = 2;  ///< finding::no_more_threads
inline constexpr unsigned explains_queues = 4;  ///< finding::explains_cpu_waits

struct finding {
  finding(std::string_view the_id, phrase evidence, phrase advice = {}, double share_of_run = 0,
          std::optional<verdict> limit = {}, unsigned also = 0)
      : id(the_id),
        because(std::move(evidence)),
        to_do(std::move(advice)),
        share(share_of_run),
        is(limit),
        instead((also & gives_reason) != 0),
        no_more_threads((also & forbids_threads) != 0),
        explains_cpu_waits((also & explains_queues) != 0) {}

  std::string_view id;        ///< identifier in JSON, such as "wait-contains-work"
  phrase because;             ///< the evidence
  phrase to_do;               ///< one change
  double share;               ///< share (0..1) of the run's time that it explains
  std::optional<verdict> is;  ///< what it says limits the run; nullopt: it only explains
  /// Whether its evidence takes the place of what the simulation would say about the verdict.
  bool instead;
  bool no_more_threads;  ///< whether more threads cannot help while this holds
  /// Whether waits for a CPU have this cause, so that other programs are not to blame.
  bool explains_cpu_waits;
};

/// A rule looks at the facts of a run. It returns nothing unless they show what it is about.
using finding_rule = std::optional<finding>(const run_facts& facts);

/// Returns the findings about a run, in the order in which they are printed.
std::vector<finding> find_all(const run_facts& facts);

/// The rules; rules.cpp lists them in order.
finding_rule worker_ended_early, thread_for_each_batch, batches_pile_up, worked_outside_markers;
finding_rule wait_contains_work, wait_polls, slow_hand_over, refilled_in_windows;
finding_rule cpu_limit, pinned_threads, unmarked_threads, time_in_kernel;
finding_rule step_waits_for_lock, perhaps_a_lock, waits_for_one_pipe, time_changes,
    slow_worker_found;
finding_rule workers_start_anew, waits_at_start, waits_while_built, waits_for_order;
finding_rule step_waits_for_cpu, steps_take_the_run, forked_batches;
finding_rule work_outside_operations, nobody_builds, calls_in_bursts;

/// Identifies what forked_batches finds: the simulation knows only one thread for each batch.
inline constexpr std::string_view forked_id = "forked-batches";
/// Identifies what calls_in_bursts finds: the largest part of the path cannot become faster.
inline constexpr std::string_view bursts_id = "calls-in-bursts";
/// Identifies what waits_for_one_pipe finds: nothing but the other end of the pipe limits the run.
inline constexpr std::string_view one_pipe_id = "one-pipe";
inline constexpr std::string_view step_lock_id = "step-waits-for-lock";
inline constexpr std::string_view step_waits_id = "step-waits";
inline constexpr std::string_view step_cpu_id = "step-waits-for-cpu";

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FINDING_HPP
