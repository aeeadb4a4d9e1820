// Tests with random programs who is blamed for waits: the holders of a lock in proportion to the
// time for which they held it, and in a pipeline of queues no thread that is not waited for.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "built_samples.hpp"
#include "catch.hpp"
#include "support.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/analysis/wait_chain.hpp"
#include "threads/data/thread_samples.hpp"

using namespace lotus::tool;
using namespace lotus::tool_test;
using lotus::detail::wait_reason;

namespace {

/// What a thread does at a moment.
struct planned_state {
  std::string function;  ///< called by the function with which the thread began
  bool waits = false;
  wait_reason reason = wait_reason::other;
  std::uint64_t address = 0;
  std::uint32_t holder = 0;

  friend bool operator<(const planned_state& a, const planned_state& b) {
    return std::tie(a.function, a.address, a.holder) < std::tie(b.function, b.address, b.holder);
  }
};

/// Builds what a recording of a program contains. Thread 0 is the main thread.
class planned_run {
 public:
  explicit planned_run(std::size_t moments) : moments_(moments), to_(1000) {
    for (std::size_t m = 0; m < moments; ++m) {
      to_.rounds.emplace_back().at_ms = static_cast<std::uint32_t>(m);
    }
  }

  static std::uint32_t tid_of(std::size_t thread) { return static_cast<std::uint32_t>(1 + thread); }

  /// Adds a thread with its states, one for each moment.
  void add(const std::string& start, const std::vector<planned_state>& states) {
    const auto number = static_cast<std::uint32_t>(to_.threads.size());
    sampled_thread& thread = to_.thread(0);
    thread.wait_samples = moments_;
    thread.waits = 0;
    std::map<planned_state, std::size_t> known;
    for (std::size_t m = 0; m < moments_; ++m) {
      const planned_state& state = states[m];
      const auto [at, is_new] = known.try_emplace(state, to_.samples.size());
      if (is_new) add_sample(number, start, state);
      ++to_.samples[at->second].count;
      thread.waits += state.waits ? 1U : 0U;
      const auto sample = static_cast<std::int32_t>(at->second);
      to_.rounds[m].states.push_back({number, state.waits ? sample : sampled_round::runs});
      to_.rounds[m].alive = number + 1;
    }
    thread.cpu_ns = (moments_ - thread.waits) * to_.duration_ns / moments_;
  }

  const thread_samples& samples() const { return to_; }

 private:
  void add_sample(std::uint32_t thread, const std::string& start, const planned_state& state) {
    const std::vector<call_line> calls{{state.function, 0}, {start, 0}};
    const std::string begin = thread == 0 ? main_begins : thread_begins;
    thread_sample& sample = state.waits ? to_.waits(thread, calls, 0, begin, state.reason)
                                        : to_.runs(thread, calls, 0, begin);
    sample.address = state.address;
    sample.holder = state.holder;
    source_place& function = to_.names[to_.stacks.back()[state.waits ? 1 : 0]].front();
    function.has_object = function.function.find("::") != std::string::npos;
  }

  std::size_t moments_;
  built_samples to_;
};

std::string start_of(std::size_t group) {
  return group == 0 ? "main" : "loop" + std::to_string(group);
}

std::size_t group_number(const thread_activity& group) {
  return group.is_main ? 0 : std::stoul(group.start.substr(4));
}

/// Checks a program whose threads want one lock. Returns the first fault; "" if there is none.
std::string fault_with_lock(dice& random) {
  const std::size_t threads = 2 + random.below(std::size_t{9});
  const std::size_t moments = 20 + random.below(std::size_t{40});
  const std::size_t groups = 2 + random.below(threads - 1);
  const int often_unknown = random.below(10);
  std::vector<std::size_t> group_of{0};
  for (std::size_t i = 1; i < threads; ++i) {
    group_of.push_back(i < groups ? i : 1 + random.below(groups - 1));
  }
  std::vector<std::vector<planned_state>> states(threads);
  std::vector<std::size_t> members(groups);
  std::vector<double> waits(groups);
  std::map<std::pair<std::size_t, std::size_t>, double> known;  // by groups of waiter and holder
  for (const std::size_t group : group_of) ++members[group];
  for (std::size_t m = 0; m < moments; ++m) {
    const std::size_t holder = std::min(random.below(threads), random.below(threads));
    for (std::size_t i = 0; i < threads; ++i) {
      if (i == holder || random.below(5) == 0) {
        states[i].push_back({"work"});
        continue;
      }
      const bool is_known = random.below(10) >= often_unknown;
      const std::uint32_t tid = is_known ? planned_run::tid_of(holder) : 0;
      states[i].push_back({"insert", true, wait_reason::lock, 64, tid});
      waits[group_of[i]] += 1;
      if (is_known) known[{group_of[i], group_of[holder]}] += 1;
    }
  }
  planned_run run(moments);
  for (std::size_t i = 0; i < threads; ++i) run.add(start_of(group_of[i]), states[i]);
  const named_stacks stacks(run.samples());
  const std::vector<thread_activity> found = activity_of(run.samples(), stacks);
  if (found.size() != groups) return "wrong groups";
  for (const thread_activity& group : found) {
    const std::size_t number = group_number(group);
    double all_known = 0;
    for (const auto& [of, count] : known) all_known += of.first == number ? count : 0;
    // If more than half of the holders are unknown, they are not distributed among the others.
    const bool is_divided = 2 * all_known >= waits[number];
    double sum = group.running + group.run_queue;
    for (const blocked_part& part : group.blocked) {
      sum += part.share;
      const auto count =
          !part.of ? waits[number] - all_known : known[{number, group_number(found[*part.of])}];
      if (!part.of && is_divided) return "an unknown holder is shown";
      const auto time = static_cast<double>(moments * members[number]);
      const double wanted = count / time * (is_divided ? waits[number] / all_known : 1);
      if (std::abs(part.share - wanted) > 1e-6) return "a holder has a wrong share";
    }
    if (std::abs(sum - 1) > 1e-6) return "the parts do not add up";
  }
  return {};
}

/// A planted pipeline: stage 0 is main and takes from queue 1, which stage 1 fills, and so on. At
/// each moment one stage works; those before it find their queues empty, those after it full.
struct pipeline {
  std::size_t stages = 0;
  std::size_t usual = 0;           ///< the stage that works most of the time, not 0
  std::vector<std::size_t> works;  ///< the stage that works at each moment
};

planned_state state_in(const pipeline& of, std::size_t stage, std::size_t moment, bool is_idle) {
  const std::size_t works = of.works[moment];
  const auto queue = [&](std::size_t number, bool takes) {
    const std::string name = "queue<kind" + std::to_string(number) + ">::";
    return planned_state{name + (takes ? "pop" : "push"), true, wait_reason::condition,
                         0x10000 * number + (takes ? 0U : 48U), 0};
  };
  if (stage < works) return queue(stage + 1, true);
  if (stage > works) return queue(stage, false);
  if (is_idle && stage + 1 < of.stages) return queue(stage + 1, true);
  return {"work" + std::to_string(stage)};
}

/// Checks a pipeline. Returns the first fault; "" if there is none.
/// @param reached  counts the programs in which the chain goes on to the stage that works.
std::string fault_in_pipeline(dice& random, int& reached) {
  pipeline of;
  of.stages = 2 + random.below(std::size_t{4});
  of.usual = 1 + random.below(of.stages - 1);
  const std::size_t moments = 40 + random.below(std::size_t{40});
  for (std::size_t m = 0; m < moments; ++m) {
    of.works.push_back(random.below(10) < 8 ? of.usual : random.below(of.stages));
  }
  planned_run run(moments);
  for (std::size_t stage = 0; stage < of.stages; ++stage) {
    const std::size_t pool = stage == 0 ? 1 : 1 + random.below(std::size_t{3});
    for (std::size_t i = 0; i < pool; ++i) {
      std::vector<planned_state> states;
      for (std::size_t m = 0; m < moments; ++m) {
        states.push_back(state_in(of, stage, m, i > 0 && random.below(2) == 0));
      }
      run.add(start_of(stage), states);
    }
  }
  const named_stacks stacks(run.samples());
  const std::vector<thread_activity> found = activity_of(run.samples(), stacks);
  if (found.size() != of.stages) return "wrong groups";
  for (const thread_activity& group : found) {
    const std::size_t number = group_number(group);
    for (const blocked_part& part : group.blocked) {
      if (!part.of) continue;
      const std::size_t target = group_number(found[*part.of]);
      const bool takes = part.function.function.find("pop") != std::string::npos;
      const bool is_neighbor = takes ? target == number + 1 : target + 1 == number;
      // Whoever works at the end of the chain is a guess that holds, though others are between.
      const bool is_beyond = takes ? target > number : target < number;
      if (part.sure ? !is_neighbor : !is_beyond) return "somebody else is waited for";
    }
  }
  const std::vector<chain_hop> chain = wait_chain(run.samples(), found, 0);
  std::size_t last = 0;
  for (std::size_t i = 1; i < chain.size(); ++i) {
    const std::size_t next = group_number(found[chain[i].group]);
    if (next <= last) return "the chain goes back";
    last = next;
  }
  if (chain.size() > 1 && !chain.back().wait && last != of.usual) return "another stage works";
  if (chain.size() > 1 && !chain.back().wait) ++reached;
  return {};
}

}  // namespace

TEST_CASE("in random programs with a lock, its holders are blamed in proportion") {
  dice random(2048);
  for (int i = 0; i < support::rounds(5'000); ++i) {
    const std::string fault = fault_with_lock(random);
    if (!fault.empty()) FAIL_CHECK("program " << i << ": " << fault);
    if (!fault.empty() && i > 20) break;
  }
}

TEST_CASE("in random pipelines, nobody is named who is not waited for") {
  constexpr int count = support::rounds(5'000);
  dice random(2048);
  int reached = 0;
  for (int i = 0; i < count; ++i) {
    const std::string fault = fault_in_pipeline(random, reached);
    if (!fault.empty()) FAIL_CHECK("program " << i << ": " << fault);
    if (!fault.empty() && i > 20) break;
  }
  CHECK(reached > count * 9 / 10);
}
