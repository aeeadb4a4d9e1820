#include "findings/claims.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "replay/change.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

bool shows_limit(const run_data& run, const run_blocked_on& joined, std::string_view operation,
                 std::size_t most) {
  if (operation.empty() || change_of(run, operation)) return false;
  if (!joined.processes.empty()) return lock_of(joined, operation) != nullptr;
  return most_at_once(run, operation) <= most;
}

bool claims::forbids(verdict is) const {
  if (f_.d.pushed || f_.d.makes_itself || f_.waits.waits == 0) return false;
  const wait_parts& w = f_.waits;
  switch (is) {
    case verdict::balanced:
    case verdict::consumer_bound:
      return w.share() > waits_much;
    case verdict::order_bound:
      return w.order_ns < 0.1 * w.all_ns;
    case verdict::start_up_bound:
      return w.first_ns < 0.1 * w.all_ns;
    case verdict::hand_over_bound:
    case verdict::preprocessing_bound:
    case verdict::stage_bound:
    case verdict::lock_bound:
    case verdict::prefetch_bound:
      break;
  }
  return false;
}

bool claims::forbids_faster(std::string_view name) const {
  constexpr double no_share = 0.01;
  const path_states states = f_.states_of(name);
  if (f_.path.run_ns > 0 && states.all < no_share) return true;
  // An operation that waits for a lock only becomes faster if the lock's holder does.
  const blocked_on* const lock = lock_of(f_.d.blocked_on, name);
  return lock != nullptr && !lock->held_by.empty() && lock->held_by != name &&
         states.blocked * lock->share > 0.5 * states.all;
}

bool claims::forbids(const pipeline_change& change, std::size_t workers) const {
  const bool more = (change.workers && *change.workers > workers && !change.own_thread) ||
                    !change.threads.empty();
  if (more || change.cpus) {
    for (const finding& one : findings_) {
      if (more && one.no_more_threads) return true;
      if (change.cpus && one.explains_cpu_waits) return true;
    }
  }
  return change.faster.size() == 1 && forbids_faster(change.faster.begin()->first);
}

bool claims::forbids_idle_machine() const {
  return std::any_of(findings_.begin(), findings_.end(),
                     [](const finding& one) { return one.explains_cpu_waits; }) ||
         (f_.others_cpus && !f_.others_used_cpus());
}

}  // namespace lotus::tool
