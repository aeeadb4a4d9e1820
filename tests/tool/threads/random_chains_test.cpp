// Tests chains of waits with random programs. A planted program says for each moment who waits for
// whom; the chain that the tool finds must follow it from thread to thread.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/analysis/wait_chain.hpp"
#include "threads/data/thread_samples.hpp"

using namespace lotus::tool;

namespace {

constexpr int runs = -1;

/// What a thread does at some moments. Each state has a line of its own in the thread's function.
struct planted_state {
  enum class kind : std::uint8_t { works, sleeps, waits, waits_for_unknown };
  kind is = kind::works;
  int holder = 0;  ///< the thread for which it waits
  int lock = 0;    ///< number of the lock; 0: one that nobody else wants
};

struct planted_program {
  std::vector<int> group_of;                       ///< of each thread; 0 is that of the main thread
  std::vector<std::vector<planted_state>> states;  ///< of each thread
  std::vector<std::vector<std::size_t>> moments;   ///< state of each thread at each moment
};

/// A group and a line of its function at which its threads wait; `runs` if they work.
using step = std::pair<int, int>;

class random_programs {
 public:
  planted_program next() {
    planted_program of;
    const int threads = 2 + below(5);
    const int groups = 2 + below(threads - 1);
    const bool of_one_lock = below(8) == 0;
    for (int i = 0; i < threads; ++i) {
      of.group_of.push_back(i < groups ? i : 1 + below(groups - 1));
      const int count = below(3) == 0 ? 1 + below(3) : 1;
      std::vector<planted_state> states;
      for (int k = 0; k < count; ++k) {
        planted_state one;
        const int chosen = below(10);
        one.is = chosen < 2   ? planted_state::kind::works
                 : chosen < 3 ? planted_state::kind::sleeps
                 : chosen < 4 ? planted_state::kind::waits_for_unknown
                              : planted_state::kind::waits;
        one.holder = (i + 1 + below(threads - 1)) % threads;
        if (of_one_lock || below(4) == 0) one.lock = 1 + below(of_one_lock ? 1 : 2);
        states.push_back(one);
      }
      of.states.push_back(std::move(states));
    }
    const int moments = 20 + below(40);
    for (int m = 0; m < moments; ++m) {
      std::vector<std::size_t> now;
      for (const auto& states : of.states) {
        now.push_back(static_cast<std::size_t>(below(static_cast<int>(states.size()))));
      }
      of.moments.push_back(std::move(now));
    }
    return of;
  }

 private:
  int below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }

  std::mt19937 random_{48};
};

int line_of(std::size_t thread, std::size_t state) {
  return static_cast<int>(10 + 8 * thread + state);
}

std::string function_of(int group) {
  return group == 0 ? "main" : "loop" + std::to_string(group);
}

/// Writes what a recording of the program contains.
class recorded_program {
 public:
  explicit recorded_program(const planted_program& of) {
    to_.duration_ns = 1'000'000'000;
    to_.interval_ns = 10'000'000;
    to_.modules = {"/home/user/prog", "/usr/lib/libc.so.6"};
    std::vector<std::vector<std::int32_t>> sample_of(of.states.size());
    for (std::size_t i = 0; i < of.states.size(); ++i) {
      std::vector<std::uint64_t> seen(of.states[i].size());
      for (const auto& now : of.moments) ++seen[now[i]];
      add_thread(of, i, seen);
      for (std::size_t k = 0; k < of.states[i].size(); ++k) {
        sample_of[i].push_back(seen[k] == 0 ? 0 : add_sample(of, i, k, seen[k]));
      }
    }
    for (std::size_t m = 0; m < of.moments.size(); ++m) {
      sampled_round round;
      round.at_ms = static_cast<std::uint32_t>(m);
      round.alive = static_cast<std::uint32_t>(of.states.size());
      for (std::size_t i = 0; i < of.states.size(); ++i) {
        round.states.push_back({static_cast<std::uint32_t>(i), sample_of[i][of.moments[m][i]]});
      }
      to_.rounds.push_back(std::move(round));
    }
  }

  const thread_samples& samples() const { return to_; }

 private:
  void add_thread(const planted_program& of, std::size_t i,
                  const std::vector<std::uint64_t>& seen) {
    sampled_thread thread;
    thread.pid = 1;
    thread.tid = tid_of(i);
    thread.name = "prog";
    thread.span_ns = to_.duration_ns;
    thread.wait_samples = of.moments.size();
    for (std::size_t k = 0; k < seen.size(); ++k) {
      if (of.states[i][k].is != planted_state::kind::works) thread.waits += seen[k];
    }
    thread.cpu_ns = (thread.wait_samples - thread.waits) * to_.duration_ns / thread.wait_samples;
    to_.threads.push_back(thread);
  }

  std::int32_t add_sample(const planted_program& of, std::size_t i, std::size_t k,
                          std::uint64_t count) {
    const planted_state& state = of.states[i][k];
    thread_sample sample;
    sample.thread = static_cast<std::uint32_t>(i);
    sample.count = count;
    sample.stack = static_cast<std::uint32_t>(to_.stacks.size());
    sample.waits = state.is != planted_state::kind::works;
    to_.stacks.push_back({place(function_of(of.group_of[i]), 0, line_of(i, k)),
                          place(i == 0 ? "__libc_start_main" : "start_thread", 1, 0)});
    if (sample.waits) {
      const bool sleeps = state.is == planted_state::kind::sleeps;
      sample.reason = sleeps ? lotus::detail::wait_reason::sleep : lotus::detail::wait_reason::lock;
      sample.address = sleeps ? 0 : 64 * to_.stacks.size();
      if (!sleeps && state.lock > 0) sample.address = 8U * static_cast<unsigned>(state.lock);
      if (state.is == planted_state::kind::waits) {
        sample.holder = tid_of(static_cast<std::size_t>(state.holder));
      }
    }
    to_.samples.push_back(sample);
    const bool works = !sample.waits;
    return works ? sampled_round::runs : static_cast<std::int32_t>(to_.samples.size() - 1);
  }

  static std::uint32_t tid_of(std::size_t thread) { return static_cast<std::uint32_t>(1 + thread); }

  std::uint32_t place(const std::string& function, std::uint32_t module, int line) {
    source_place calls;
    calls.function = function;
    calls.module = to_.modules[module];
    calls.file = line > 0 ? "/home/user/prog.cpp" : "";
    calls.line = line;
    to_.places.push_back({module, to_.places.size()});
    to_.names.push_back({calls});
    return static_cast<std::uint32_t>(to_.places.size() - 1);
  }

  thread_samples to_;
};

/// The independent oracle: who waited for whom, read from the planted program.
class oracle {
 public:
  explicit oracle(const planted_program& of) : of_(of) {
    for (const auto& now : of.moments) {
      std::vector<step> path;
      std::set<std::size_t> visited;
      for (std::optional<std::size_t> at = 0; at; at = next(now, *at)) {
        path.push_back(step_of(*at, now[*at]));
        const bool is_cycle = !visited.insert(*at).second;
        if (is_cycle || !waits(now, *at)) break;
        is_cut_ = is_cut_ || !next(now, *at);
      }
      paths_.push_back(std::move(path));
      for (std::size_t i = 0; i < of.states.size(); ++i) {
        if (!waits(now, i)) continue;
        edges_.insert({step_of(i, now[i]), of.group_of[holder_of(now, i)]});
        const auto after = next(now, i);
        if (after) edges_.insert({step_of(i, now[i]), of.group_of[*after]});
      }
    }
  }

  /// Whether a thread waited there for a thread of a group.
  bool is_edge(const step& from, int group) const { return edges_.count({from, group}) != 0; }
  /// Whether the wait of a step has a known cause.
  bool goes_on(const step& from) const {
    const auto after = edges_.lower_bound({from, -1});
    return after != edges_.end() && after->first == from;
  }
  /// Returns how often each step came after these steps.
  std::map<step, int> after(const std::vector<step>& steps) const {
    std::map<step, int> next;
    for (const std::vector<step>& path : paths_) {
      const bool begins =
          path.size() > steps.size() && std::equal(steps.begin(), steps.end(), path.begin());
      if (begins) ++next[path[steps.size()]];
    }
    return next;
  }
  /// The steps of the main thread, if no thread ever changed its state.
  const std::vector<step>& only_path() const { return paths_.front(); }
  /// Whether threads wait for each other for one lock, so that nobody can hold it.
  bool is_cut() const { return is_cut_; }

 private:
  const planted_state& state(const std::vector<std::size_t>& now, std::size_t thread) const {
    return of_.states[thread][now[thread]];
  }
  bool waits(const std::vector<std::size_t>& now, std::size_t thread) const {
    return state(now, thread).is == planted_state::kind::waits;
  }
  std::size_t holder_of(const std::vector<std::size_t>& now, std::size_t thread) const {
    return static_cast<std::size_t>(state(now, thread).holder);
  }
  /// Returns the thread that holds the lock, after it was handed on up to three times.
  std::optional<std::size_t> next(const std::vector<std::size_t>& now, std::size_t thread) const {
    const int lock = state(now, thread).lock;
    std::size_t holder = holder_of(now, thread);
    for (int changes = 0; lock > 0 && waits(now, holder) && state(now, holder).lock == lock;) {
      if (++changes > 3) return std::nullopt;
      holder = holder_of(now, holder);
    }
    return holder;
  }
  step step_of(std::size_t thread, std::size_t state) const {
    const bool works = of_.states[thread][state].is == planted_state::kind::works;
    return {of_.group_of[thread], works ? runs : line_of(thread, state)};
  }

  const planted_program& of_;
  std::vector<std::vector<step>> paths_;
  std::set<std::pair<step, int>> edges_;
  bool is_cut_ = false;
};

/// Returns whether a hop lasts at most as long as the wait that it explains, within the run.
bool is_possible(const std::vector<chain_hop>& chain, std::size_t at,
                 const std::vector<thread_activity>& groups) {
  constexpr double rounding = 1e-9;
  const chain_hop& hop = chain[at];
  const chain_hop* const before = hop.seen ? &chain[at - 1] : nullptr;
  const double most_s = before != nullptr ? before->time_s : groups[hop.group].time_s;
  if (hop.share < 0 || hop.share > 1 + rounding || hop.time_s > most_s + rounding) return false;
  if (hop.begin_s > hop.end_s || hop.end_s > 1) return false;
  return before == nullptr || (hop.begin_s >= before->begin_s && hop.end_s <= before->end_s);
}

/// Returns the first thing that is wrong about the chain of a program; "" if it is right.
std::string fault_in(const planted_program& of, std::size_t& hops) {
  const recorded_program recorded(of);
  const named_stacks stacks(recorded.samples());
  const std::vector<thread_activity> groups = activity_of(recorded.samples(), stacks);
  const oracle truth(of);
  std::vector<step> steps;
  const std::vector<chain_hop> chain = wait_chain(recorded.samples(), groups, 0);
  if (chain.empty()) return "the chain is not shown";
  for (const chain_hop& hop : chain) {
    int group = 0;
    while (function_of(group) != groups[hop.group].start) ++group;
    const int line = hop.wait ? groups[hop.group].blocked[*hop.wait].function.line : runs;
    if (!steps.empty() && !truth.is_edge(steps.back(), group)) return "an edge is invented";
    if (!is_possible(chain, steps.size(), groups)) return "a hop lasts too long";
    if (hop.seen) {
      const std::map<step, int> all = truth.after(steps);
      int sum = 0;
      int most = 0;
      for (const auto& [next, count] : all) {
        sum += count;
        most = std::max(most, count);
      }
      const auto found = all.find({group, line});
      if (found == all.end() || found->second < most) return "a rarer hop is shown";
      if (std::abs(hop.share - static_cast<double>(most) / sum) > 1e-9) return "a share is wrong";
    } else if (!steps.empty()) {
      int sum = 0;
      for (const auto& [next, count] : truth.after(steps)) sum += count;
      if (chain[steps.size() - 1].seen && sum >= 8) return "a hop that was seen is guessed";
    }
    steps.emplace_back(group, line);
  }
  hops += steps.size();
  const step last = steps.back();
  const bool is_cycle = std::count(steps.begin(), steps.end(), last) > 1;
  if (last.second != runs && truth.goes_on(last) && !is_cycle) return "the chain ends too early";
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (std::count(steps.begin(), steps.end() - 1, steps[i]) > 1) return "a cycle goes on";
  }
  bool is_static = true;
  for (const auto& states : of.states) is_static = is_static && states.size() == 1;
  if (is_static && !truth.is_cut()) {
    if (steps != truth.only_path()) return "it is not the only path";
  }
  for (const thread_activity& group : groups) {
    double sum = group.running + group.run_queue;
    for (const blocked_part& part : group.blocked) sum += part.share;
    if (!group.blocked.empty() && std::abs(sum - 1) > 1e-6) return "the parts do not add up";
  }
  return {};
}

}  // namespace

TEST_CASE("in random programs, chains follow the waits to their ends") {
  constexpr int count = support::rounds(10'000);
  random_programs programs;
  std::size_t hops = 0;
  for (int i = 0; i < count; ++i) {
    const planted_program of = programs.next();
    const std::string fault = fault_in(of, hops);
    if (fault.empty()) continue;
    FAIL_CHECK("program " << i << ": " << fault);
    if (i > 20) break;
  }
  CHECK(hops > 3 * count / 2);  // the programs have waits
}
