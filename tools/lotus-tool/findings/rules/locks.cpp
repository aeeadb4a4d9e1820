// Locks that the consumer's step waits for, and locks that few samples show.
#include <optional>
#include <string>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "model/path/critical_path.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {
namespace {

const blocked_on* lock_in(const blocked_list& list) {
  for (const blocked_on& one : list.by) {
    if (one.reason == wait_reason::lock) return &one;
  }
  return nullptr;
}

/// Returns the lock and, if samples show it, who held it.
name_word shown(const blocked_on& lock) {
  return {lock_name(lock) + (lock.held_by.empty() ? "" : ", held by " + lock.held_by)};
}

}  // namespace

std::optional<finding> step_waits_for_lock(const run_facts& f) {
  constexpr std::uint64_t fewest = 5;
  const path_states steps = f.states(path_kind::step);
  const blocked_list& list = f.d.blocked_on.steps;
  const blocked_on* const lock = lock_in(list);
  if (lock == nullptr || lock->samples < fewest || steps.blocked <= 0) return std::nullopt;
  const double share = lock->share * steps.blocked;
  if (share < 0.1) return std::nullopt;
  return finding{
      step_lock_id,
      {"the consumer's step waits for % during % of the run.", {shown(*lock), share_word{share}}},
      {"Hold this lock for a shorter time where it is held, or use a lock of its own."},
      share,
      {},
      f.waits.share() < waits_much && share >= 0.3 ? gives_reason : 0U};
}

std::optional<finding> perhaps_a_lock(const run_facts& f) {
  constexpr std::uint64_t fewest = 5;
  const path_share* const work = f.largest_work();
  if (f.d.lock || work == nullptr) return std::nullopt;
  const bool stages = f.d.blocked_on.preprocessing.empty();
  const blocked_list* const list =
      stages ? f.d.blocked_on.of('S' + work->name) : &f.d.blocked_on.preprocessing;
  const blocked_on* const lock = list == nullptr ? nullptr : lock_in(*list);
  if (lock == nullptr || lock->samples < fewest) return std::nullopt;
  const double blocked =
      stages ? f.states_of(work->name).blocked
             : f.states(path_kind::operation).blocked + f.states(path_kind::unrecorded).blocked;
  const double share = lock->share * blocked;
  if (share < 0.15) return std::nullopt;
  return finding{"perhaps-a-lock",
                 {"Work on batches waits for % during about % of the run (% samples).",
                  {shown(*lock), share_word{share}, count_word{lock->samples}}},
                 {"Hold it for a shorter time; more workers would wait for it as well."},
                 share,
                 {},
                 forbids_threads};
}

}  // namespace lotus::tool
