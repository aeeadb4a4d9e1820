// Asks all rules about a run.
#include <optional>
#include <utility>
#include <vector>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"

namespace lotus::tool {
std::vector<finding> find_all(const run_facts& facts) {
  static finding_rule* const rules[] = {
      worker_ended_early,
      cpu_limit,
      pinned_threads,
      wait_contains_work,
      wait_polls,
      wait_for_cpu,
      wait_spins,
      buffer_filled_first,
      refilled_in_windows,
      passed_on_together,
      wait_of_fixed_time,
      slow_hand_over,
      unmarked_threads,
      step_waits_for_lock,
      workers_start_anew,
      workers_start_again,
      waits_at_start,
      time_changes,
      slow_worker_found,
      perhaps_a_lock,
      waits_for_one_pipe,
      waits_for_many_pipes,
      time_in_kernel,
      parts_in_sequence,
      built_on_demand,
      limited_batches,
      workers_ended,
      workers_wait_for_consumer,
      workers_begin_late,
      waits_while_built,
      work_between_batches,
      nobody_builds,
      rate_limit,
      waits_for_few,
      waits_for_order,
      equally_slow_stages,

      threads_sleep,
      steps_take_the_run,
      pauses_between_epochs,
      step_operation,
      worked_outside_markers,
      thread_for_each_batch,
      several_consumers,
      batches_pile_up,
      forked_batches,
      step_waits_for_cpu,
      work_outside_operations,
  };
  std::vector<finding> all;
  for (finding_rule* const rule : rules) {
    std::optional<finding> found = rule(facts);
    if (found) all.push_back(std::move(*found));
  }
  return all;
}

const finding* first_with(finding_effect effect, const std::vector<finding>& findings) {
  for (const finding& one : findings) {
    if (one.has(effect)) return &one;
  }
  return nullptr;
}

}  // namespace lotus::tool
