// Tests with random threads which groups, times and shares a recording has. What is expected is
// computed thread by thread from what was planted.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "built_samples.hpp"
#include "catch.hpp"
#include "support.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/sample_times.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

using namespace lotus::tool;
using namespace lotus::tool_test;

namespace {

constexpr int functions = 3;  ///< the number of functions that each role calls

/// A thread, with times in ms. The first one is the main thread.
struct planted {
  std::string role;  ///< name of its group
  int pid = 1;
  std::string name = "prog";
  int begin = 0;
  int end = 0;  ///< 0: not seen to end
  int span = 0;
  int ran = 0;
  int queued = 0;
  int looks = 0;
  int blocked = 0;                     ///< number of `looks`
  int starter = -1;                    ///< the thread that started it; -1: unknown
  bool sampled = true;                 ///< otherwise it was too short-lived
  std::vector<int> cpu{0, 0, 0};       ///< number of CPU samples in each function
  std::vector<int> waits_in{0, 0, 0};  ///< number of wait samples in each function
};

struct planted_run {
  int duration = 0;  ///< 0: unknown, as in files of earlier versions
  int interval = 10;
  int all_cpu = 0;
  std::vector<planted> threads;
};

std::string role_of(int number) {
  return "loop" + std::to_string(number);
}

planted random_thread(dice& random, const planted_run& run, int number) {
  planted one;
  one.role = number == 0 ? "main" : role_of(random.below(3));
  const int second_process = number == 1 && random.one_in(3) ? 2 : 1;
  one.pid = second_process;
  if (one.pid == 2) one.role = "main of child", one.name = "child";
  if (one.pid == 1 && number > 0 && random.one_in(3)) one.name = "helper";
  const int duration = run.duration == 0 ? 1000 : run.duration;
  if (number > 0) one.begin = 10 * random.below(duration / 20);
  if (number > 0 && random.one_in(2)) one.end = one.begin + 10 * (1 + random.below(40));
  // A thread whose start was not recorded can have been noticed after its end.
  if (one.begin > 30 && random.one_in(10)) one.end = one.begin - 10;
  const int lifetime = std::max(0, (one.end == 0 ? duration : one.end) - one.begin);
  const int part = random.below(6);  // how much of its life was read
  one.span = part == 0 ? 0 : part == 1 ? lifetime / 10 * 9 : part == 2 ? lifetime / 2 : lifetime;
  if (random.one_in(6)) one.span = 10 * random.below(12);
  one.ran = one.span / 10 * random.below(8);
  one.queued = random.one_in(2) ? one.span / 10 * random.below(5) : 0;
  one.looks = random.one_in(6) ? 0 : 1 + random.below(40);
  one.blocked = random.one_in(6) ? 0 : random.below(one.looks + 1);
  for (int i = 0; i < functions; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (random.one_in(2)) one.cpu[at] = 10 * random.below(8);
    if (one.blocked > 0 && random.one_in(2)) one.waits_in[at] = random.below(20);
  }
  if (one.cpu[0] + one.waits_in[0] == 0) one.cpu[0] = 1;
  return one;
}

planted_run random_run(dice& random) {
  planted_run run;
  run.duration = random.one_in(8) ? 0 : 500 + 10 * random.below(60);
  run.all_cpu = 10 * random.below(400);
  const int threads = 1 + random.below(7);
  for (int i = 0; i < threads; ++i) run.threads.push_back(random_thread(random, run, i));
  for (int i = 1; i < threads; ++i) {
    planted& one = run.threads[static_cast<std::size_t>(i)];
    if (one.pid == 1 && random.one_in(2)) one.starter = 0;
  }
  if (!random.one_in(3)) return run;
  for (int i = random.below(8); i-- > 0;) {
    planted one;
    one.sampled = false;
    one.cpu.clear();
    one.starter = random.one_in(4) ? random.below(threads) : 0;
    one.begin = 1 + 10 * random.below(30);
    one.end = one.begin + 10 * random.below(10);
    run.threads.push_back(one);
  }
  return run;
}

std::uint32_t tid_of(const planted& one, std::size_t number) {
  return number == 0 || one.pid == 2 ? static_cast<std::uint32_t>(one.pid)
                                     : static_cast<std::uint32_t>(100 + number);
}

void add_thread(const planted_run& run, std::size_t number, built_samples& to) {
  const planted& one = run.threads[number];
  sampled_thread& thread = to.thread(one.ran);
  thread.pid = static_cast<std::uint32_t>(one.pid);
  thread.tid = tid_of(one, number);
  thread.name = one.name;
  thread.wait_samples = static_cast<std::uint64_t>(one.looks);
  thread.waits = static_cast<std::uint64_t>(one.blocked);
  thread.span_ns = ms_in_ns(one.span);
  thread.queue_ns = ms_in_ns(one.queued);
  thread.started_ns = ms_in_ns(one.begin);
  thread.ended_ns = ms_in_ns(one.end);
  if (one.starter >= 0) {
    const auto starter = static_cast<std::size_t>(one.starter);
    thread.parent = tid_of(run.threads[starter], starter);
  }
  const std::string begin = one.role.rfind("main", 0) == 0 ? main_begins : thread_begins;
  for (std::size_t i = 0; i < one.cpu.size(); ++i) {
    // All threads of a role call the same function, so the role is no wrapper of others.
    const std::vector<call_line> calls{
        {"Work::step" + std::to_string(i), 0}, {"body_of_" + one.role, 0}, {one.role, 0}};
    if (one.cpu[i] > 0) to.runs(number, calls, one.cpu[i], begin);
    if (one.waits_in[i] == 0) continue;
    to.waits(number, calls, one.waits_in[i], begin, lotus::detail::wait_reason::sleep);
  }
}

/// Returns what a recording of these threads contains.
thread_samples recorded(const planted_run& run) {
  built_samples to(run.duration);
  to.interval_ns = ms_in_ns(run.interval);
  to.all_cpu_ns = ms_in_ns(run.all_cpu);
  to.processes = {{1, "/home/user/prog"}, {2, "/home/user/child"}};
  for (std::size_t i = 0; i < run.threads.size(); ++i) add_thread(run, i, to);
  return std::move(to);
}

/// What is known of a planted group.
struct expected_group {
  std::set<std::size_t> members;
  int unsampled = 0;
  int time = 0;  ///< in ms, as all times
  int cpu = 0;
  int at_once = 0;
  double running = 0;
  double run_queue = 0;
  std::vector<int> cpu_samples{0, 0, 0};
  std::vector<int> waits_in{0, 0, 0};
};

int sum_of(const std::vector<int>& counts) {
  int sum = 0;
  for (const int count : counts) sum += count;
  return sum;
}

class oracle {
 public:
  explicit oracle(const planted_run& run) : run_(run) {
    for (std::size_t i = 0; i < run.threads.size(); ++i) {
      if (run.threads[i].sampled) groups_[run.threads[i].role].members.insert(i);
    }
    const std::map<std::string, expected_group> sampled = groups_;
    for (std::size_t i = 0; i < run.threads.size(); ++i) {
      if (!run.threads[i].sampled) join_siblings(i, sampled);
    }
    for (auto& [role, group] : groups_) measure(group);
    add_unread_cpu();
    for (auto& [role, group] : groups_) add_states(group);
  }
  const std::map<std::string, expected_group>& groups() const { return groups_; }

 private:
  /// A thread that was not sampled does what four fifths of the others do that were started by the
  /// same group.
  void join_siblings(std::size_t thread, const std::map<std::string, expected_group>& sampled) {
    const planted& starter = run_.threads[static_cast<std::size_t>(run_.threads[thread].starter)];
    if (starter.pid != 1) return;
    std::size_t all = 0;
    for (const auto& [role, group] : sampled) all += siblings(group, starter.role);
    for (const auto& [role, group] : sampled) {
      if (all == 0 || 5 * siblings(group, starter.role) < 4 * all) continue;
      groups_[role].members.insert(thread);
      ++groups_[role].unsampled;
    }
  }

  std::size_t siblings(const expected_group& group, const std::string& starter) const {
    std::size_t count = 0;
    for (const std::size_t i : group.members) {
      const int by = run_.threads[i].starter;
      if (by >= 0 && run_.threads[static_cast<std::size_t>(by)].role == starter) ++count;
    }
    return count;
  }

  int end_of(const planted& one) const { return one.end == 0 ? run_.duration : one.end; }

  void measure(expected_group& group) const {
    int spans = 0;
    for (const std::size_t i : group.members) {
      const planted& one = run_.threads[i];
      const int lifetime = std::max(0, end_of(one) - one.begin);
      group.time += lifetime;
      spans += one.span;
      const int sampled = run_.interval * sum_of(one.cpu);
      const bool exact = one.span > 0 && 10 * one.span >= 9 * lifetime;
      group.cpu += exact ? one.ran : std::max(one.ran, sampled);
      for (std::size_t k = 0; k < one.cpu.size(); ++k) {
        group.cpu_samples[k] += one.cpu[k];
        group.waits_in[k] += one.waits_in[k];
      }
      int others = 0;
      for (const std::size_t other : group.members) {
        const planted& two = run_.threads[other];
        if (two.begin <= one.begin && one.begin < end_of(two)) ++others;
      }
      if (lifetime > 0) group.at_once = std::max(group.at_once, others);
    }
    if (run_.duration == 0) group.time = spans;
    group.cpu = std::min(group.cpu, group.time);
  }

  void add_unread_cpu() {
    int left = run_.all_cpu;
    std::vector<expected_group*> unread;
    for (auto& [role, group] : groups_) {
      left -= group.cpu;
      if (group.unsampled > 0) unread.push_back(&group);
    }
    if (unread.size() != 1 || left <= 0) return;
    unread.front()->cpu = std::min(unread.front()->cpu + left, unread.front()->time);
  }

  void add_states(expected_group& group) const {
    int looks = 0;
    int blocked = 0;
    int span = 0;
    int ran = 0;
    int queued = 0;
    for (const std::size_t i : group.members) {
      looks += run_.threads[i].looks;
      blocked += run_.threads[i].blocked;
      span += run_.threads[i].span;
      ran += run_.threads[i].ran;
      queued += run_.threads[i].queued;
    }
    double awake = 1;
    if (span < 100) {  // too short for exact times
      if (looks > 0) awake = 1 - static_cast<double>(blocked) / looks;
      if (looks == 0 && run_.duration == 0) group.time = run_.interval * sum_of(group.cpu_samples);
      if (looks == 0) ran = 1, queued = 0;
    } else if (looks == 0 || blocked > 0) {
      awake = std::min(1.0, static_cast<double>(ran + queued) / span);
    }
    group.run_queue = queued == 0 ? 0 : awake * queued / (ran + queued);
    group.running = awake - group.run_queue;
  }

  const planted_run& run_;
  std::map<std::string, expected_group> groups_;
};

bool near(double a, double b) {
  return std::abs(a - b) < 1e-9;
}

/// Returns the first thing that is wrong about a group; "" if it is right.
std::string fault_in(const thread_activity& found, const expected_group& group) {
  if (found.members != group.members || found.threads != group.members.size()) return "members";
  if (found.unsampled != static_cast<std::size_t>(group.unsampled)) return "unsampled";
  if (!near(found.time_s, 1e-3 * group.time)) return "time";
  if (!near(found.cpu_s, 1e-3 * group.cpu)) return "CPU time";
  if (found.at_once != static_cast<std::size_t>(group.at_once)) return "threads at once";
  if (!near(found.running, group.running)) return "running";
  if (!near(found.run_queue, group.run_queue)) return "waiting for a CPU";
  if (std::min(found.running, found.run_queue) < -1e-9) return "a negative share";
  std::map<std::string, double> shares;
  for (const function_share& one : found.functions) shares[one.function.function] += one.share;
  std::map<std::string, double> blocked;
  for (const blocked_part& part : found.blocked) blocked[part.function.function] += part.share;
  const int waits = sum_of(group.waits_in);
  for (std::size_t i = 0; i < group.cpu_samples.size(); ++i) {
    const std::string name = "Work::step" + std::to_string(i);
    const int cpu = sum_of(group.cpu_samples);
    if (cpu > 0 && !near(shares[name], 1.0 * group.cpu_samples[i] / cpu)) return "a function";
    const double rest = 1 - group.running - group.run_queue;
    if (waits > 0 && !near(blocked[name], rest * group.waits_in[i] / waits)) return "a wait";
  }
  const auto by_share = [](const auto& a, const auto& b) { return a.share > b.share; };
  if (!std::is_sorted(found.functions.begin(), found.functions.end(), by_share) ||
      !std::is_sorted(found.blocked.begin(), found.blocked.end(), by_share)) {
    return "order of the parts";
  }
  return {};
}

std::string fault_in(const planted_run& run) {
  const thread_samples samples = recorded(run);
  const named_stacks stacks(samples);
  const std::vector<thread_activity> found = activity_of(samples, stacks);
  const oracle truth(run);
  if (found.size() != truth.groups().size()) return "number of groups";
  double before = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto group = truth.groups().find(found[i].start);
    if (group == truth.groups().end()) return "there is no group " + found[i].start;
    const std::string fault = fault_in(found[i], group->second);
    if (!fault.empty()) return fault + " of " + found[i].start;
    if (found[i].is_main != (i == 0)) return "main is not the first";
    const double busy = found[i].time_s * (found[i].running + found[i].run_queue);
    if (i > 1 && busy > before + 1e-9) return "a group that works more comes later";
    before = busy;
  }
  // The times of the samples add up to those of the group.
  std::vector<double> ran(found.size());
  std::vector<double> waited(found.size());
  for (const timed_sample& one : sample_times(samples, found)) {
    (one.of->waits ? waited : ran)[one.group] += one.time_s;
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const thread_activity& of = found[i];
    if (of.cpu_samples > 0 && !near(ran[i], of.time_s * of.running)) return "times of samples";
    const double blocked = of.time_s * (1 - of.running - of.run_queue);
    if (!of.blocked.empty() && !near(waited[i], blocked)) return "times of waits";
  }
  return {};
}

}  // namespace

TEST_CASE("random threads are in the right groups, and the groups' times and shares are theirs") {
  dice random(1912);
  for (int i = 0; i < support::rounds(10'000); ++i) {
    const std::string fault = fault_in(random_run(random));
    if (fault.empty()) continue;
    FAIL_CHECK("recording " << i << ": " << fault);
    if (i > 100) break;
  }
}
