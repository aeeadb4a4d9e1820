// All threads of the largest part always have work, and sleep or wait for the network in it.
#include <algorithm>
#include <cstddef>
#include <optional>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "model/path/critical_path.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {
namespace {

/// Returns the share (0..1) of an operation's or stage's blocked time for which it sleeps.
double sleeping(const run_facts& f, const path_share& work) {
  const blocked_list* const list = f.d.blocked_on.of('S' + work.name);
  double share = 0;
  for (std::size_t i = 0; list != nullptr && i < list->by.size(); ++i) {
    const wait_reason reason = list->by[i].reason;
    if (reason == wait_reason::sleep || reason == wait_reason::socket) share += list->by[i].share;
  }
  return share;
}

/// Returns how many threads do this work, if all of them nearly always do; 0 otherwise.
std::size_t busy_threads_of(const run_facts& f, const path_share& work) {
  constexpr double nearly_always = 0.85;
  const auto stage =
      std::find_if(f.d.stages.begin(), f.d.stages.end(),
                   [&](const stage_figures& s) { return s.name == work.name && !s.pool; });
  if (stage != f.d.stages.end()) return stage->shares.busy >= nearly_always ? stage->slots : 0;
  const auto workers = static_cast<double>(f.idle.workers);
  const double busy_ns = f.d.mean_preprocess_ns * static_cast<double>(f.d.received);
  const bool all =
      f.idle.building >= nearly_always * workers && busy_ns >= nearly_always * workers * f.run_ns;
  return work.kind == path_kind::operation && all ? f.idle.workers : 0;
}

}  // namespace

std::optional<finding> threads_sleep(const run_facts& f) {
  constexpr double most_of_it = 0.6;
  const path_share* const work = f.largest_work();
  if (work == nullptr || f.d.pushed || f.d.makes_itself || f.waits.share() < waits_much) {
    return std::nullopt;
  }
  const path_states states = f.states_of(work->name);
  const double asleep = states.all > 0 ? sleeping(f, *work) * states.blocked / states.all : 0;
  const std::size_t threads = busy_threads_of(f, *work);
  if (states.all < 0.5 || asleep < most_of_it || threads == 0 || rate_limit(f) ||
      perhaps_a_lock(f) || waits_for_one_pipe(f) || slow_worker_found(f) ||
      refilled_in_windows(f) || passed_on_together(f)) {
    return std::nullopt;
  }
  return finding{"threads-sleep",
                 {"the % of % always % work, and % for % of that time.",
                  {count_word{threads, "thread", "threads"}, name_word{work->name},
                   name_word{threads == 1 ? "has" : "have"},
                   name_word{threads == 1 ? "sleeps" : "sleep"}, share_word{asleep}}},
                 {"Use more threads: while one sleeps, it needs no CPU."},
                 states.blocked,
                 {},
                 replaces_prediction};
}

}  // namespace lotus::tool
