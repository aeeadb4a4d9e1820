// Tests with random moments who works while others wait, and with random pipes who has opened their
// other ends.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "built_samples.hpp"
#include "catch.hpp"
#include "support.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/seen_together.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

using namespace lotus::tool;
using namespace lotus::tool_test;
using lotus::detail::wait_reason;

namespace {

constexpr std::size_t groups = 3;

/// The waits whose workers are looked for, and states of other threads, by the index of a sample.
enum planted_sample : std::int32_t {
  wanted,
  works_for_disk,
  works_for_memory,
  unknown_lock,
  known_lock,
  naps,
  samples
};

bool is_work(std::int32_t state) {
  return state == sampled_round::runs || state == works_for_disk || state == works_for_memory ||
         state == unknown_lock;
}

struct planted_moments {
  thread_samples samples;
  std::vector<std::size_t> group_of;
};

planted_moments random_moments(dice& random) {
  built_samples to(100);
  planted_moments of;
  const int threads = 2 + random.below(6);
  const bool all_live = random.one_in(3);
  for (int i = 0; i < threads; ++i) {
    sampled_thread& thread = to.thread(50);
    if (!all_live && random.one_in(2)) thread.started_ns = ms_in_ns(random.below(60));
    if (!all_live && random.one_in(3)) thread.ended_ns = ms_in_ns(40 + random.below(60));
    of.group_of.push_back(random.one_in(8) ? seen_together::no_group
                                           : static_cast<std::size_t>(random.below(groups)));
  }
  for (std::int32_t i = 0; i < planted_sample::samples; ++i) {
    const wait_reason reason = i == works_for_disk     ? wait_reason::file
                               : i == works_for_memory ? wait_reason::page_fault
                               : i == naps             ? wait_reason::sleep
                               : i == wanted           ? wait_reason::condition
                                                       : wait_reason::lock;
    const bool has_holder = i == known_lock;
    to.waits(0, {{"wait", 1}}, 1, thread_begins, reason).holder = has_holder ? 1 : 0;
  }
  const int moments = 4 + random.below(30);
  const int usual = random.below(samples + 1) - 1;
  for (int m = 0; m < moments; ++m) {
    sampled_round& round = to.rounds.emplace_back();
    round.at_ms = static_cast<std::uint32_t>(random.below(100));
    for (int i = 0; i < threads; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool exists = to.threads[at].started_ns <= ms_in_ns(static_cast<int>(round.at_ms)) &&
                          (to.threads[at].ended_ns == 0 ||
                           to.threads[at].ended_ns > ms_in_ns(static_cast<int>(round.at_ms)));
      if (!exists || random.one_in(4)) continue;  // not all threads are looked at
      const std::int32_t state = i == 0 && !random.one_in(5) ? wanted
                                 : random.one_in(2)          ? usual
                                                             : random.below(samples + 2) - 2;
      round.states.push_back({static_cast<std::uint32_t>(i), state});
    }
  }
  of.samples = std::move(to);
  return of;
}

/// Returns the share of the moments in which a group worked, of those in which it is known.
double expected_share(const planted_moments& of, std::size_t group) {
  double known = 0;
  double worked = 0;
  for (const sampled_round& round : of.samples.rounds) {
    std::optional<std::uint32_t> waiting;
    for (const sampled_round::state& one : round.states) {
      if (one.sample == wanted && !waiting) waiting = one.thread;
    }
    if (!waiting) continue;
    double seen = 0;
    bool works = false;
    for (const sampled_round::state& one : round.states) {
      if (of.group_of[one.thread] != group) continue;
      seen += 1;
      works = works || (one.thread != *waiting && is_work(one.sample));
    }
    double alive = 0;
    for (std::size_t i = 0; i < of.group_of.size(); ++i) {
      const sampled_thread& t = of.samples.threads[i];
      const std::uint64_t now = ms_in_ns(static_cast<int>(round.at_ms));
      const bool exists = t.started_ns <= now && (t.ended_ns == 0 || now < t.ended_ns);
      if (of.group_of[i] == group && exists) alive += 1;
    }
    worked += works ? 1 : 0;
    known += works || alive == 0 ? 1 : seen / alive;
  }
  return known > 0 ? worked / known : 0;
}

std::size_t moments_of(const planted_moments& of) {
  std::size_t count = 0;
  for (const sampled_round& round : of.samples.rounds) {
    count += std::any_of(round.states.begin(), round.states.end(),
                         [](const sampled_round::state& one) { return one.sample == wanted; })
                 ? 1U
                 : 0U;
  }
  return count;
}

std::string fault_in(const planted_moments& of) {
  const seen_together together(of.samples, of.group_of, groups);
  const std::vector<double> found =
      together.working_during([](std::size_t sample) { return sample == wanted; });
  if (found.empty() != (moments_of(of) < 8)) return "enough moments";
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!(std::abs(found[i] - expected_share(of, i)) < 1e-9)) return "a share";
  }
  return {};
}

}  // namespace

TEST_CASE("of random moments, groups worked in those in which one of their threads did") {
  dice random(81);
  for (int i = 0; i < support::rounds(5'000); ++i) {
    const std::string fault = fault_in(random_moments(random));
    if (fault.empty()) continue;
    FAIL_CHECK("moments " << i << ": " << fault);
    if (i > 100) break;
  }
}

TEST_CASE("one group works alone if it works nearly always, and no other one half of the time") {
  dice random(9);
  for (unsigned i = 0; i < support::rounds(5'000); ++i) {
    std::vector<double> shares;
    std::size_t often = 0;
    std::optional<std::size_t> most;
    for (std::size_t k = 0; k < 1U + i % 4U; ++k) {
      const int tenths = random.below(11);
      shares.push_back(tenths / 10.0);
      if (tenths >= 8) most = k;
      if (tenths >= 5) ++often;
    }
    CHECK(only_worker_of(shares) == (often == 1 ? most : std::nullopt));
  }
  CHECK_FALSE(only_worker_of({}));
}

TEST_CASE("the other end of a pipe is open in the processes that opened it, and outside if none") {
  dice random(18);
  for (int i = 0; i < support::rounds(5'000); ++i) {
    built_samples to(100);
    to.thread(50);
    const wait_reason reason = random.any_of<wait_reason>(
        {wait_reason::pipe, wait_reason::socket, wait_reason::poll, wait_reason::file});
    thread_sample& wait = to.waits(0, {{"main", 1}}, 1, main_begins, reason);
    const bool writes = random.one_in(2);
    wait.address = 6 + (writes ? 1 : 0);
    wait.what = random.any_of<std::string>({"pipe:[1]", "/dev/pts/1", "/dev/tty", "/dev/null"});
    if (reason == wait_reason::poll) wait.polled = "pipe:[1]";
    const bool is_pipe = wait.channel() == "pipe:[1]";
    std::set<std::uint32_t> others;
    bool is_known = false;
    for (int ends = random.below(4); ends-- > 0;) {
      open_end end;
      end.what = random.one_in(3) ? "pipe:[2]" : "pipe:[1]";
      end.pid = static_cast<std::uint32_t>(1 + random.below(3));
      end.reads = random.one_in(2);
      end.writes = !end.reads || random.one_in(4);
      to.ends.push_back(end);
      if (end.what != wait.channel()) continue;
      is_known = true;
      if (writes ? end.reads : end.writes) others.insert(end.pid);
    }
    if (others.size() > 1) others.erase(1);
    CHECK(at_other_end(to, wait) == others);
    const bool is_terminal = wait.what != "/dev/null" && wait.what != "pipe:[1]";
    const bool is_outside_file = reason == wait_reason::file && is_terminal;
    const bool is_channel = reason != wait_reason::file;
    CHECK(is_outside(to, wait) ==
          (is_outside_file || (is_channel && is_pipe && is_known && others.empty())));
  }
}

namespace {

/// The main thread waits for a channel, while threads of several processes work.
struct planted_channel {
  wait_reason reason = wait_reason::pipe;
  bool writes = false;
  std::vector<std::uint32_t> others;  ///< the processes that have opened the other end
  struct thread {
    int group = 0;
    std::uint32_t pid = 1;
    int works = 0;  ///< in this number of the 20 moments
  };
  std::vector<thread> threads;
};

planted_channel random_channel(dice& random) {
  planted_channel of;
  of.reason =
      random.any_of<wait_reason>({wait_reason::pipe, wait_reason::socket, wait_reason::poll});
  of.writes = random.one_in(2);
  for (std::uint32_t pid = 1; pid <= 3; ++pid) {
    if (random.one_in(2)) of.others.push_back(pid);
  }
  for (int i = random.below(5); i-- > 0;) {
    const int works = random.any_of<int>({0, 9, 10, 11, 20});
    of.threads.push_back({random.below(3), static_cast<std::uint32_t>(1 + random.below(3)), works});
  }
  return of;
}

thread_samples recorded(const planted_channel& of) {
  built_samples to(1000);
  to.thread(100);
  thread_sample& wait = to.waits(0, {{"receive", 1}}, 50, main_begins, of.reason);
  wait.address = of.writes ? 7 : 6;
  wait.what = of.reason == wait_reason::poll ? "several pipes" : "pipe:[7]";
  if (of.reason == wait_reason::poll) wait.polled = "pipe:[7]";
  to.ends.push_back({"pipe:[7]", 1, !of.writes, of.writes});
  for (const std::uint32_t pid : of.others)
    to.ends.push_back({"pipe:[7]", pid, of.writes, !of.writes});
  to.rounds.resize(20);
  for (sampled_round& round : to.rounds) round.states.push_back({0, 0});
  for (const planted_channel::thread& one : of.threads) {
    const std::size_t number = to.threads.size();
    sampled_thread& thread = to.thread(500);
    thread.pid = one.pid;
    thread.tid = static_cast<std::uint32_t>(100 + number);
    const std::string start = "loop" + std::to_string(one.group);
    const std::vector<call_line> calls{{"work", 1}, {"body_of_" + start, 1}, {start, 1}};
    to.runs(number, calls, 9, thread_begins);
    to.waits(number, calls, 9, thread_begins, wait_reason::sleep);
    const auto sleeps = static_cast<std::int32_t>(to.samples.size() - 1);
    for (int m = 0; m < 20; ++m) {
      const std::int32_t state = m < one.works ? +sampled_round::runs : sleeps;
      to.rounds[static_cast<std::size_t>(m)].states.push_back(
          {static_cast<std::uint32_t>(number), state});
    }
  }
  return std::move(to);
}

/// Returns whom main waits for: "", or the group, and "?" if it is probable.
std::string expected_user(const planted_channel& of) {
  std::set<std::uint32_t> others(of.others.begin(), of.others.end());
  if (others.size() > 1) others.erase(1);
  std::set<int> all;
  std::set<int> working;
  for (const planted_channel::thread& one : of.threads) {
    if (others.count(one.pid) != 0) all.insert(one.group);
  }
  for (const planted_channel::thread& one : of.threads) {
    if (one.works >= 10 && all.count(one.group) != 0) working.insert(one.group);
  }
  if (all.size() == 1) return "loop" + std::to_string(*all.begin());
  if (working.size() != 1) return {};
  const bool is_known = others.count(1) == 0 && of.reason != wait_reason::poll;
  return "loop" + std::to_string(*working.begin()) + (is_known ? "" : "?");
}

}  // namespace

TEST_CASE(
    "of random threads at the other end of a pipe, the only ones or those that work are named") {
  dice random(40);
  for (int i = 0; i < support::rounds(5'000); ++i) {
    const planted_channel of = random_channel(random);
    const thread_samples samples = recorded(of);
    const std::vector<thread_activity> found = activity_of(samples, named_stacks(samples));
    const blocked_part& wait = found.front().blocked.front();
    const std::string named = wait.of ? found[*wait.of].start + (wait.sure ? "" : "?") : "";
    INFO("channel " << i);
    CHECK(named == expected_user(of));
    CHECK(wait.outside == of.others.empty());
  }
}
