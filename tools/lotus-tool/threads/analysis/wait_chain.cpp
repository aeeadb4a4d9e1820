#include "threads/analysis/wait_chain.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "threads/analysis/seen_together.hpp"

namespace lotus::tool {
namespace {

/// The state of a group's thread: a wait, by its index in `blocked`, or one of the constants.
using group_state = std::pair<std::size_t, std::int64_t>;
constexpr std::int64_t state_runs = -1;
constexpr std::int64_t state_unknown = -2;

/// Chains that begin with the same states, and how often they were seen.
struct chain_node {
  std::size_t count = 0;
  std::uint32_t first_ms = 0;
  std::uint32_t last_ms = 0;
  std::map<group_state, chain_node> next;
};

/// In each round, follows the waits of a group's threads from thread to thread.
class followed_waits {
 public:
  followed_waits(const thread_samples& samples, const std::vector<thread_activity>& groups)
      : samples_(samples),
        groups_(groups),
        group_of_(groups_of_threads(samples, groups)),
        together_(samples, group_of_, groups.size()),
        wait_of_(samples.samples.size(), state_unknown) {
    for (std::size_t i = 0; i < samples.threads.size(); ++i) {
      thread_of_[{samples.threads[i].pid, samples.threads[i].tid}] = i;
    }
    for (const thread_activity& group : groups) {
      for (std::size_t i = 0; i < group.blocked.size(); ++i) {
        for (const std::size_t sample : group.blocked[i].samples) {
          wait_of_[sample] = static_cast<std::int64_t>(i);
        }
      }
    }
  }

  chain_node from(std::size_t first) const {
    chain_node root;
    for (const sampled_round& round : samples_.rounds) {
      for (const sampled_round::state& one : round.states) {
        if (group_of_[one.thread] == first) follow(round, one, root);
      }
    }
    return root;
  }

 private:
  group_state state_of(const sampled_round::state& one) const {
    const std::int64_t wait = one.sample == sampled_round::runs ? state_runs
                              : one.sample < 0                  ? state_unknown
                                               : wait_of_[static_cast<std::size_t>(one.sample)];
    return {group_of_[one.thread], wait};
  }

  void follow(const sampled_round& round, const sampled_round::state& first,
              chain_node& root) const {
    std::set<std::uint32_t> visited;
    chain_node* at = &root;
    for (const sampled_round::state* one = &first; one != nullptr;
         one = next(round, *one, visited)) {
      if (group_of_[one->thread] == seen_together::no_group) return;
      at = &at->next[state_of(*one)];
      if (at->count++ == 0) at->first_ms = round.at_ms;
      at->last_ms = round.at_ms;
      if (!visited.insert(one->thread).second) return;  // a cycle
    }
  }

  /// Returns the state of the thread for which a thread waits; null if it is unknown.
  const sampled_round::state* next(const sampled_round& round, const sampled_round::state& one,
                                   const std::set<std::uint32_t>& visited) const {
    // The states of a moment are read one after the other. A holder that is then seen waiting for
    // the same lock has given it to the thread that its own state names.
    constexpr int max_changes = 3;
    const sampled_round::state* after = waited_for_by(round, one, visited);
    for (int i = 0; after != nullptr && is_same_lock(one, *after); ++i) {
      after = i == max_changes ? nullptr : waited_for_by(round, *after, visited);
    }
    return after;
  }

  /// As next(), but the thread may itself wait for the same lock. If only the
  /// group is known, it is a thread that was not visited and works, if there is one; but one that
  /// waits for a lock if as many do that as run, because then the lock limits the group.
  const sampled_round::state* waited_for_by(const sampled_round& round,
                                            const sampled_round::state& one,
                                            const std::set<std::uint32_t>& visited) const {
    const auto [group, wait] = state_of(one);
    if (wait < 0) return nullptr;
    const thread_sample& s = samples_.samples[static_cast<std::size_t>(one.sample)];
    const auto holder = thread_of_.find({samples_.threads[s.thread].pid, s.holder});
    const auto& of = groups_[group].blocked[static_cast<std::size_t>(wait)].of;
    if (!of) return nullptr;
    const bool has_ends = is_channel(s.reason);
    const std::set<std::uint32_t> processes =
        has_ends ? at_other_end(samples_, s) : std::set<std::uint32_t>{};
    const sampled_round::state* best = nullptr;
    const sampled_round::state* locked_out = nullptr;
    int best_rank = -1;
    int excess = 0;  // of threads that wait for a lock over those that run
    for (const sampled_round::state& other : round.states) {
      if (s.holder != 0 && holder != thread_of_.end()) {
        if (other.thread == holder->second) return &other;
        continue;
      }
      if (group_of_[other.thread] != *of) continue;
      if (has_ends && processes.count(samples_.threads[other.thread].pid) == 0) continue;
      const int rank = visited.count(other.thread) != 0      ? 0
                       : other.sample == sampled_round::runs ? 3
                       : together_.works(other)              ? 2
                                                             : 1;
      if (rank > best_rank) best = &other;
      best_rank = std::max(best_rank, rank);
      if (other.sample == sampled_round::runs) --excess;
      if (!waits_for_known_lock(other)) continue;
      ++excess;
      if (rank > 0) locked_out = &other;
    }
    return excess >= 0 && locked_out != nullptr ? locked_out : best;
  }

  bool waits_for_known_lock(const sampled_round::state& one) const {
    if (one.sample < 0) return false;
    const thread_sample& s = samples_.samples[static_cast<std::size_t>(one.sample)];
    return s.reason == lotus::detail::wait_reason::lock && s.holder != 0;
  }

  bool is_same_lock(const sampled_round::state& one, const sampled_round::state& other) const {
    if (!waits_for_known_lock(one) || !waits_for_known_lock(other)) return false;
    const thread_sample& a = samples_.samples[static_cast<std::size_t>(one.sample)];
    const thread_sample& b = samples_.samples[static_cast<std::size_t>(other.sample)];
    return a.address == b.address &&
           samples_.threads[a.thread].pid == samples_.threads[b.thread].pid;
  }

  const thread_samples& samples_;
  const std::vector<thread_activity>& groups_;
  std::vector<std::size_t> group_of_;
  seen_together together_;
  std::vector<std::int64_t> wait_of_;  // of each sample: index in `blocked` of its group
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> thread_of_;
};

/// Returns what a group does most of its time.
chain_hop usual_hop(const std::vector<thread_activity>& groups, std::size_t group) {
  const thread_activity& of = groups[group];
  const double longest = of.blocked.empty() ? 0 : of.blocked.front().share;
  // On a busy machine, a thread that mostly waits for others waits for a CPU too.
  if (longest <= of.running || 2 * longest < of.run_queue || !of.is_sampled()) {
    return {group, std::nullopt, of.running + of.run_queue, false};
  }
  return {group, 0, longest, false};
}

/// Returns the state that was seen most often after another; nullopt if too few were seen.
std::optional<chain_hop> seen_hop(const chain_node& after, const chain_node*& chosen) {
  constexpr std::size_t enough = 8;
  std::size_t sum = 0;
  const std::pair<const group_state, chain_node>* most = nullptr;
  for (const auto& one : after.next) {
    if (one.first.second == state_unknown) continue;
    sum += one.second.count;
    if (most == nullptr || one.second.count > most->second.count) most = &one;
  }
  if (sum < enough) return std::nullopt;
  chosen = &most->second;
  chain_hop hop{most->first.first, std::nullopt,
                static_cast<double>(most->second.count) / static_cast<double>(sum), true};
  if (most->first.second >= 0) hop.wait = static_cast<std::size_t>(most->first.second);
  return hop;
}

/// Returns for how long the threads of the chain's first group can have waited for those of a
/// group, summed over the former.
double longest_wait(const std::vector<thread_activity>& groups, std::size_t first,
                    std::size_t group) {
  return groups[group].time_s *
         static_cast<double>(std::max<std::size_t>(1, groups[first].at_once));
}

/// Whether the parts of each group's time add up to it, and no group was waited for much longer
/// than it existed. Few samples may be wrong by a factor of two, but not by more.
bool adds_up(const std::vector<thread_activity>& groups, const std::vector<chain_hop>& chain) {
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const thread_activity& group = groups[chain[i].group];
    double sum = group.running + group.run_queue;
    for (const blocked_part& part : group.blocked) sum += part.share;
    if (!group.blocked.empty() && !(std::abs(sum - 1) < 1e-6)) return false;
    if (i == 0 || !chain[i].seen) continue;
    const double longest = longest_wait(groups, chain.front().group, chain[i].group);
    if (!(chain[i].share * chain[i - 1].time_s <= 0.1 + 2 * longest)) return false;
  }
  return true;
}

}  // namespace

std::vector<chain_hop> wait_chain(const thread_samples& samples,
                                  const std::vector<thread_activity>& groups, std::size_t first) {
  std::vector<chain_hop> chain{usual_hop(groups, first)};
  const chain_node root = followed_waits(samples, groups).from(first);
  const chain_node* at = &root;
  std::set<group_state> known;
  const auto set_times = [&] {
    chain_hop& hop = chain.back();
    hop.time_s = hop.share * (hop.seen ? chain[chain.size() - 2].time_s : groups[hop.group].time_s);
    if (hop.seen) hop.time_s = std::min(hop.time_s, longest_wait(groups, first, hop.group));
    if (at == nullptr || at == &root) return;
    hop.begin_s = 1e-3 * at->first_ms;
    hop.end_s = 1e-3 * at->last_ms;
  };
  set_times();
  while (chain.back().wait) {
    const chain_hop last = chain.back();
    const group_state state{last.group, static_cast<std::int64_t>(*last.wait)};
    const blocked_part& wait = groups[last.group].blocked[*last.wait];
    if (!wait.of || !known.insert(state).second) break;  // the end, or a cycle
    // After the first hop, `at` is already the node of the last state.
    if (chain.size() == 1) {
      const auto begin = root.next.find(state);
      at = begin == root.next.end() ? nullptr : &begin->second;
      set_times();
    }
    const auto seen = at == nullptr ? std::nullopt : seen_hop(*at, at);
    if (!seen) at = nullptr;
    chain.push_back(seen ? *seen : usual_hop(groups, *wait.of));
    set_times();
  }
  if (!adds_up(groups, chain)) chain.clear();
  return chain;
}

}  // namespace lotus::tool
