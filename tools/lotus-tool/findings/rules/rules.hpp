// Declares the rules; each has a file of its own. rules.cpp registers them.
#ifndef LOTUS_TOOL_FINDINGS_RULES_RULES_HPP
#define LOTUS_TOOL_FINDINGS_RULES_RULES_HPP

#include <optional>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"

namespace lotus::tool {

std::optional<finding> worker_ended_early(const run_facts& f);
std::optional<finding> thread_for_each_batch(const run_facts& f);
std::optional<finding> batches_pile_up(const run_facts& f);
std::optional<finding> worked_before_markers(const run_facts& f);
std::optional<finding> wait_contains_work(const run_facts& f);
std::optional<finding> wait_polls(const run_facts& f);
std::optional<finding> slow_hand_over(const run_facts& f);
std::optional<finding> refilled_in_windows(const run_facts& f);
std::optional<finding> cpu_limit(const run_facts& f);
std::optional<finding> pinned_threads(const run_facts& f);
std::optional<finding> unmarked_threads(const run_facts& f);
std::optional<finding> step_waits_for_lock(const run_facts& f);
std::optional<finding> perhaps_a_lock(const run_facts& f);
std::optional<finding> time_changes(const run_facts& f);
std::optional<finding> slow_worker_found(const run_facts& f);
std::optional<finding> time_in_kernel(const run_facts& f);
std::optional<finding> workers_start_anew(const run_facts& f);
std::optional<finding> waits_while_built(const run_facts& f);
std::optional<finding> waits_for_order(const run_facts& f);
std::optional<finding> waits_at_start(const run_facts& f);
std::optional<finding> steps_take_the_run(const run_facts& f);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_RULES_RULES_HPP
