// What the consumer's step waits for, and locks that few samples show.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "findings/facts/facts.hpp"
#include "findings/facts/library_locks.hpp"
#include "findings/finding.hpp"
#include "findings/words.hpp"
#include "model/path/critical_path.hpp"
#include "waits/join/blocked_on.hpp"
#include "waits/join/limiting_lock.hpp"

namespace lotus::tool {
namespace {

const blocked_on* lock_in(const blocked_list& list) {
  for (const blocked_on& one : list.by) {
    if (one.reason == wait_reason::lock && !is_of_lotus(one)) return &one;
  }
  return nullptr;
}

/// Returns the lock and, if samples show it, who held it.
name_word shown(const blocked_on& lock) {
  return {lock_name(lock) + (lock.held_by.empty() ? "" : ", held by " + lock_holders(lock)) +
          what_holder_does(lock)};
}

/// Returns the advice for a lock of the allocator.
constexpr const char* allocate_less =
    "Allocate less often, such as by reusing buffers, lift a limit of arenas (MALLOC_ARENA_MAX), "
    "or use an allocator with a heap for each thread";

/// Returns the finding about a lock of the C library.
/// @param share  share (0..1) of the run in which work on batches waits for it, if that is known.
std::optional<finding> shared_library_lock(const run_facts& f, double share = 0) {
  const blocked_on* const lock = library_lock(f);
  if (lock == nullptr) return std::nullopt;
  constexpr double limits = 0.15;
  finding of{"library-lock",
             {"threads wait for each other in %, whose lock they all share (% samples).",
              {name_word{lock->taken_in}, count_word{lock->samples}}},
             {"Call it rarely, or use a replacement without shared state, such as a generator "
              "of random numbers for each thread."}};
  if (!is_allocation(lock->taken_in)) return of;
  of.to_do = phrase{allocate_less}.add(".");
  if (share < limits) return of;
  of.to_do = lock_advice(*lock).add(".");
  of.share = share;
  of.effects = forbids_threads | names_lock;
  return of;
}

/// Finds what else than a lock the consumer's step waits for.
std::optional<finding> step_waits(const run_facts& f) {
  // By what is waited for: calls that wait for a process may differ, and so may addresses.
  std::map<std::pair<wait_reason, std::string>, std::pair<double, const blocked_on*>> waits;
  for (const blocked_on& one : f.d.blocked_on.steps.by) {
    if (is_lock_or_sleep(one.reason)) continue;
    auto& [sum, of] = waits[{one.reason, one.reason == wait_reason::process ? "" : one.what.name}];
    sum += one.share;
    of = &one;
  }
  const auto most = std::max_element(waits.begin(), waits.end(), [](const auto& a, const auto& b) {
    return a.second.first < b.second.first;
  });
  if (most == waits.end() || f.d.blocked_on.steps.samples < 5) return std::nullopt;
  const double share = most->second.first * f.states(path_kind::step).blocked;
  if (share < 0.3) return std::nullopt;
  finding of{"step-waits",
             {"the consumer's step % during % of the run",
              {name_word{wait_phrase(*most->second.second, {})}, share_word{share}}},
             {"Shorten this wait, or wait later; 'lotus-tool threads' shows the line."},
             share};
  if (f.waits.share() < waits_much) {
    of.is = verdict::consumer_bound;
    of.effects = gives_reason | (share > 0.5 ? forbids_faster_step : 0U);
  }
  const std::string& other = f.d.blocked_on.during_steps;
  if (!other.empty()) {
    of.because.add(", mostly while another thread is in %", {name_word{other}});
    of.to_do = {"If it waits for this, make % faster, or wait for it later.", {name_word{other}}};
  }
  of.because.add(".");
  return of;
}

/// Whether it is a lock of the C library that starting and ending a thread takes.
bool is_of_thread_start(const blocked_on& lock) {
  const std::string& name = lock.what.name;
  return name == "_rtld_global" || name == "_dl_stack_cache_lock" || name == "stack_cache_lock";
}

}  // namespace

std::optional<finding> step_waits_for_lock(const run_facts& f) {
  constexpr std::uint64_t fewest = 5;
  const path_states steps = f.states(path_kind::step);
  const blocked_list& list = f.d.blocked_on.steps;
  const blocked_on* const lock = lock_in(list);
  std::optional<finding> other = step_waits(f);
  if (lock == nullptr || lock->samples < fewest || steps.blocked <= 0) return other;
  const double share = lock->share * steps.blocked;
  if (share < 0.1 || (other && other->share > share)) return other;
  return finding{
      "step-waits-for-lock",
      {"the consumer's step waits for % during % of the run.", {shown(*lock), share_word{share}}},
      {"Hold this lock for a shorter time where it is held, or use a lock of its own."},
      share,
      {},
      f.waits.share() < waits_much && share >= 0.3 ? gives_reason | forbids_faster_step : 0U};
}

std::optional<finding> perhaps_a_lock(const run_facts& f) {
  constexpr std::uint64_t fewest = 5;
  const path_share* const work = f.largest_work();
  const bool stages = f.d.blocked_on.preprocessing.empty();
  if (f.d.lock || (stages && work == nullptr)) return shared_library_lock(f);
  const blocked_list* const list =
      stages ? f.d.blocked_on.of('S' + work->name) : &f.d.blocked_on.preprocessing;
  const blocked_on* const lock = list == nullptr ? nullptr : lock_in(*list);
  if (lock == nullptr || lock->samples < fewest) return shared_library_lock(f);
  // The finding about these threads says what to do.
  if (f.started.count > 0 && is_of_thread_start(*lock)) return std::nullopt;
  const double share =
      lock->share * blocked_on_path(f.run, f.path, stages ? work->name : std::string());
  if (share < 0.15 || is_of_library(*lock)) return shared_library_lock(f, share);
  return finding{"perhaps-a-lock",
                 {"Work on batches waits during about % of the run for % (% samples).",
                  {share_word{share}, shown(*lock), count_word{lock->samples}}},
                 lock_advice(*lock).add("."),
                 share,
                 {},
                 forbids_threads | names_lock};
}

phrase lock_words(const limiting_lock& lock) {
  return {"% %: % of the time of preprocessing",
          {name_word{lock.operation.empty() ? "preprocessing" : lock.operation},
           name_word{wait_phrase(lock.of, lock.operation)}, share_word{lock.share}}};
}

phrase lock_advice(const blocked_on& lock) {
  // Threads that do not hold it themselves may do more while it is free.
  if (lock.held_by == unmarked_code) {
    return {"Hold it for a shorter time there, or let that code work on a copy of the data"};
  }
  return phrase{"More workers do not help. "}.add(
      is_allocation(lock.taken_in) ? allocate_less
                                   : "Do less work under the lock, or split the lock");
}

}  // namespace lotus::tool
