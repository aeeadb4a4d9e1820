// Parts whose times change during the run, and workers that are slower than others.
#include "findings/facts/changes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "findings/facts/facts.hpp"
#include "findings/facts/library_locks.hpp"
#include "findings/facts/waiting_workers.hpp"
#include "findings/finding.hpp"
#include "findings/words.hpp"
#include "log/shown_name.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

phrase phrase_without_reason(const time_change& c) {
  const name_word who{c.is_outside   ? "The work outside of all operations"
                      : c.of.empty() ? "The consumer's step"
                                     : c.of};
  const time_word before{c.before_ns};
  const time_word after{c.after_ns};
  switch (c.is) {
    case time_change::shape::step:
      return {"% takes % until batch %, then %.", {who, before, count_word{c.at}, after}};
    case time_change::shape::trend:
      return {"% % all through the run, from % to %.",
              {who,
               name_word{c.after_ns > c.before_ns ? "takes longer and longer"
                                                  : "takes less and less time"},
               before, after}};
    case time_change::shape::now_again:
      break;
  }
  if (c.every > 0) {
    return {"% takes % at every % batch, and % at the others.",
            {who, after, ordinal_word{c.every}, before}};
  }
  // The median of times that differ much does not fit the share of the time.
  constexpr double clearly = 0.1;
  const bool differ = std::abs(c.rare_mean_ns - c.after_ns) > clearly * c.after_ns;
  phrase text{"% takes % ", {who, time_word{differ ? c.rare_mean_ns : c.after_ns}}};
  if (differ) text.add("on average ");
  return text.add("at % batches, which is % of its time, and % at the others.",
                  {count_word{c.rare}, share_word{c.rare_share}, before});
}

phrase phrase_of(const time_change& c) {
  phrase text = phrase_without_reason(c);
  if (!c.by_calls) return text;
  return text.add(c.after_ns > c.before_ns ? " A call takes as long as before: there are more."
                                           : " A call takes as long as before: there are fewer.");
}

/// Whether a worker has as many batches to build as the others, and does nothing else in the run.
bool is_always_busy(const run_facts& f, const slow_worker& w) {
  std::map<std::uint64_t, std::pair<double, double>> of_thread;  // number of batches, and ns
  for (const preprocessing_span& s : f.run.batches.preprocessing_spans()) {
    const std::string stage =
        s.stage == preprocess_stage ? "" : shown_name(f.run.names.name(s.stage.value()));
    if (stage != w.stage || !s.file) continue;
    auto& [count, ns] = of_thread[f.run.log(*s.file).number];
    ++count;
    ns += static_cast<double>(s.duration_ns);
  }
  constexpr double nearly = 0.9;
  constexpr double nearly_always = 0.85;
  double all = 0;
  for (const auto& [thread, of] : of_thread) all += of.first;
  const auto& [count, ns] = of_thread[w.worker];
  return count >= nearly * all / static_cast<double>(of_thread.size()) &&
         ns >= nearly_always * f.run_ns;
}

}  // namespace

std::optional<finding> slow_worker_found(const run_facts& f) {
  // With most workers slow, or a change over time, the means of workers say little. Of two workers,
  // one is often somewhat slower by chance.
  const double much_slower = f.d.workers <= 2 ? 2 : 1.5;
  if (f.d.slow_workers.empty() || f.d.slow_workers.front().slower_than < much_slower) {
    return std::nullopt;
  }
  const slow_worker& w = f.d.slow_workers.front();
  constexpr double hardly_slower = 1.25;
  if (slower_by_work(f, w) < hardly_slower) return std::nullopt;
  // Of threads that share a lock of the C library or a slow service, one may get it less often than
  // the others.
  const std::optional<finding> lock = perhaps_a_lock(f);
  if (lock && lock->id == "library-lock") return std::nullopt;
  const path_share* const most = f.largest_work();
  const bool is_served = most != nullptr && f.states_of(most->name).blocked >= 0.3 &&
                         f.run.operations <= most_searched_operations &&
                         steady_ends_per_s(f.run, most->name);
  if (is_served) return std::nullopt;
  phrase because{"Worker % needs % for a batch",
                 {name_word{std::to_string(w.worker)}, time_word{w.mean_ns}}};
  if (!w.stage.empty()) because.add(" in %", {name_word{w.stage}});
  because.add(", % times as long as the others.", {count_word{w.slower_than}});
  return finding{"slow-worker",
                 std::move(because),
                 {"Find out what is different on this thread."},
                 0,
                 {},
                 doubts_threads | (is_always_busy(f, w) ? gives_reason | forbids_order : 0U)};
}

std::optional<finding> time_changes(const run_facts& f) {
  // Threads that compete for the CPUs differ from moment to moment in what they get.
  constexpr double clearly_not_by_chance = 4;
  const std::optional<finding> unmarked = unmarked_threads(f);
  const bool is_crowded = unmarked && unmarked->has(gives_reason);
  const auto at = std::find_if(f.changes.begin(), f.changes.end(), [&](const time_change& c) {
    const double factor = std::max(c.before_ns, c.after_ns) / std::min(c.before_ns, c.after_ns);
    const bool lasts = c.is != time_change::shape::now_again && factor >= clearly_not_by_chance;
    if (is_crowded && !lasts) return false;
    // Threads that contend for a lock of the C library may fall into step, and then take longer.
    if (library_lock_of(f, c.of) != nullptr) return false;
    // Waits for a lock or a turn and a slow worker make some calls slow, too, and explain more.
    return c.is != time_change::shape::now_again ||
           (!slow_worker_found(f) && !rate_limit(f) && lock_of(f.d.blocked_on, c.of) == nullptr);
  });
  if (at == f.changes.end()) return std::nullopt;
  return finding{"changes-over-time", phrase_of(*at),
                 at->is_outside ? phrase{"Put LOTUS_SCOPE into what it consists of."} : phrase{},
                 at->is_outside   ? f.states(path_kind::unrecorded).all
                 : at->of.empty() ? f.states(path_kind::step).all
                                  : f.states_of(at->of).all};
}

}  // namespace lotus::tool
