// Tests which hops a chain of waits has, what the sentences about it contain, and which are left
// out.
#include "threads/view/headline.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "built_samples.hpp"
#include "catch.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/analysis/wait_chain.hpp"
#include "threads/data/thread_samples.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using namespace lotus::tool_test;
using lotus::detail::wait_reason;

namespace {

thread_activity group_in(const std::string& function, std::size_t threads = 1) {
  thread_activity of;
  of.start = of.function = function;
  of.threads = threads;
  of.wait_samples = 100;
  of.running = 0.5;
  of.functions.push_back({{}, 0.7});
  of.functions.back().function.function = "work_of_" + function;
  return of;
}

thread_activity main_group() {
  thread_activity of = group_in("main");
  of.is_main = true;
  return of;
}

blocked_part wait(wait_reason reason, const std::string& what = "") {
  blocked_part part;
  part.reason = reason;
  part.what = what;
  return part;
}

std::string outside(wait_reason reason, std::uint64_t descriptor) {
  blocked_part part = wait(reason, "pipe:[7]");
  part.outside = true;
  part.descriptor = descriptor;
  return shown_wait(part);
}

/// Adds a wait for another group.
void wait_for(thread_activity& group, std::size_t other, wait_reason reason = wait_reason::lock) {
  blocked_part part = wait(reason);
  part.of = other;
  part.sure = true;
  group.blocked.push_back(part);
}

chain_hop hop(std::size_t group, bool waits, bool seen = true) {
  chain_hop one;
  one.group = group;
  if (waits) one.wait = 0;
  one.share = 0.6;
  one.seen = seen;
  return one;
}

std::string last_sentence(const std::vector<thread_activity>& groups,
                          const std::vector<chain_hop>& chain) {
  return chain_sentences(groups, chain).back();
}

}  // namespace

TEST_CASE("what is known of the thing that is waited for is shown") {
  CHECK(contains(shown_wait(wait(wait_reason::lock, "table_mutex")), "`table_mutex`"));
  CHECK(contains(shown_wait(wait(wait_reason::lock, "/run/x.lock")), "file lock /run/x.lock"));
  CHECK(shown_wait(wait(wait_reason::lock)) == "for a lock");
  CHECK(contains(shown_wait(wait(wait_reason::file, "/data/a.tar")), "/data/a.tar"));
  CHECK(shown_wait(wait(wait_reason::file, "anon_inode")) == shown_wait(wait(wait_reason::file)));
  CHECK(contains(shown_wait(wait(wait_reason::other, "ioctl")), "ioctl"));
  CHECK(shown_wait(wait(wait_reason::other)) == "in the kernel");
  for (const char* call : {"pause", "rt_sigsuspend", "rt_sigtimedwait"}) {
    CHECK(shown_wait(wait(wait_reason::other, call)) == "for a signal");
  }
  blocked_part one = wait(wait_reason::poll, "several pipes");
  CHECK_FALSE(contains(shown_wait(one), "several pipes"));
  one.for_several = true;
  CHECK(contains(shown_wait(one), "several pipes"));
  one = wait(wait_reason::condition);
  CHECK_FALSE(contains(shown_wait(one), "end of a thread"));
  one.for_thread_end = true;
  CHECK(contains(shown_wait(one), "end of a thread"));
}

TEST_CASE("standard input and output have their names, and readers differ from writers") {
  CHECK(outside(wait_reason::pipe, 0) == "for input from outside (standard input)");
  CHECK(outside(wait_reason::pipe, 3) == "for a reader outside (standard output)");
  CHECK(outside(wait_reason::pipe, 5) == "for a reader outside (standard error)");
  CHECK(outside(wait_reason::pipe, 6) == "for input from outside (pipe:[7])");
  // Which one of several was not ready is unknown.
  CHECK(outside(wait_reason::poll, 0) == "for input from outside (pipe:[7])");
}

TEST_CASE("that threads wait for CPUs is said if they do for a fifth of their time") {
  std::vector<thread_activity> groups{main_group()};
  groups[0].run_queue = 0.19;
  CHECK_FALSE(contains(last_sentence(groups, {hop(0, false)}), "for a CPU"));
  groups[0].run_queue = 0.2;
  std::string text = last_sentence(groups, {hop(0, false)});
  CHECK(text.find("for a CPU") > text.find("70 %"));
  groups[0].run_queue = 0.6;  // the larger part comes first
  text = last_sentence(groups, {hop(0, false)});
  CHECK(text.find("for a CPU") < text.find("70 %"));

  groups[0].blocked.push_back(wait(wait_reason::sleep));
  CHECK(contains(last_sentence(groups, {hop(0, true, false)}), "60 % for a CPU"));
  groups[0].run_queue = 0.1;
  CHECK_FALSE(contains(last_sentence(groups, {hop(0, true, false)}), "for a CPU"));
  groups[0].run_queue = 0.2;
  CHECK(contains(last_sentence(groups, {hop(0, true, false)}), "20 % for a CPU"));
  // The share of another thread's wait is not comparable.
  CHECK_FALSE(contains(last_sentence(groups, {hop(0, true)}), "for a CPU"));
}

TEST_CASE("one thread, several threads, processes and what is unknown have their own words") {
  std::vector<thread_activity> groups{main_group(), group_in("loop", 2)};
  wait_for(groups[0], 1, wait_reason::condition);
  std::vector<std::string> text = chain_sentences(groups, {hop(0, true, false), hop(1, false)});
  REQUIRE(text.size() == 2);
  CHECK(text[0] == "main thread waits 60 % of the time, for 2 threads in `loop`");
  CHECK(text[1] == "These threads spend 70 % of their CPU time in `work_of_loop`");
  groups[0].blocked[0].sure = false;
  groups[0].blocked[0].why = "it is a guess";
  groups[0].blocked[0].function.function = "next";
  groups[1].threads = 1;
  groups[1].functions.clear();
  text = chain_sentences(groups, {hop(0, true, false), hop(1, false)});
  CHECK(text[0] ==
        "main thread waits 60 % of the time, in `next`, probably for 1 thread in `loop` (it is a "
        "guess)");
  CHECK(text[1] == "This thread runs 50 % of the time");
  groups[1].is_process = true;
  groups[1].blocked.push_back(wait(wait_reason::sleep));
  CHECK(last_sentence(groups, {hop(0, true), hop(1, true)}) ==
        "This process sleeps 60 % of that time");
  groups[1].threads = 2;
  CHECK(last_sentence(groups, {hop(0, true), hop(1, false)}) ==
        "These processes run 50 % of the time");
  wait_for(groups[1], 1);
  CHECK(shown_target(groups[1].blocked[1], groups, groups[1]) == "others of these processes");
  CHECK(shown_target(wait(wait_reason::lock), groups, groups[1]).empty());
}

TEST_CASE("a cycle names each of its members once, and whether they wait at the same time") {
  std::vector<thread_activity> groups{main_group(), group_in("a"), group_in("b"), group_in("c")};
  for (const std::size_t next : {1U, 2U, 3U, 1U}) {
    const std::size_t of = next == 1 && !groups[0].blocked.empty() ? 3 : next - 1;
    wait_for(groups[of], next);
  }
  const std::vector<chain_hop> chain{hop(0, true), hop(1, true), hop(2, true), hop(3, true),
                                     hop(1, true)};
  const std::string names = "So 1 thread in `a`, 1 thread in `b` and 1 thread in `c` wait";
  CHECK(chain_sentences(groups, chain).size() == 5);
  CHECK(last_sentence(groups, chain) == names + " for each other");
  std::vector<chain_hop> guessed = chain;
  guessed[3].seen = false;
  CHECK(last_sentence(groups, guessed) == names + " for each other in turn");
  groups[2].blocked[0].reason = wait_reason::condition;
  CHECK(last_sentence(groups, chain) == names + " for each other in turn");
  // Another wait of the same group is no cycle.
  std::vector<chain_hop> other{hop(0, true), hop(1, true), hop(1, true)};
  wait_for(groups[1], 2);
  other[2].wait = 1;
  CHECK_FALSE(contains(last_sentence(groups, other), "each other"));
  other[2].wait.reset();
  CHECK_FALSE(contains(last_sentence(groups, other), "each other"));
}

TEST_CASE("if nothing is explained, the busiest other threads are named, if any are busy") {
  std::vector<thread_activity> groups{main_group(), group_in("a"), group_in("b"), group_in("c")};
  groups[1].cpu_s = 1;
  groups[2].cpu_s = 3;
  groups[3].cpu_s = 2;
  CHECK(contains(headline_of(groups, {hop(0, false)}), "busiest other one is 1 thread in `b`"));
  CHECK(contains(headline_of(groups, {hop(2, false)}), "busiest other one is 1 thread in `c`"));
  groups[2].threads = 2;
  CHECK(contains(headline_of(groups, {hop(0, false)}), "threads are 2 threads in `b`"));
  groups[2].running = 0.04;
  CHECK_FALSE(contains(headline_of(groups, {hop(0, false)}), "busiest"));
  groups[2].running = 0;
  groups[2].run_queue = 0.05;
  CHECK(contains(headline_of(groups, {hop(0, false)}), "busiest"));
  wait_for(groups[0], 1);
  CHECK_FALSE(contains(headline_of(groups, {hop(0, true), hop(1, false)}), "busiest"));
  CHECK(contains(headline_of(groups, {hop(0, true)}), "busiest"));
  groups[0].blocked[0].outside = true;
  CHECK_FALSE(contains(headline_of(groups, {hop(0, true)}), "busiest"));

  groups[0].wait_samples = 12;
  groups[0].cpu_samples = 8;
  CHECK_FALSE(headline_of(groups, {hop(0, false)}).empty());
  groups[0].cpu_samples = 7;
  CHECK(headline_of(groups, {hop(0, false)}).empty());
  groups[0].is_main = false;
  groups[0].cpu_samples = 8;
  CHECK(headline_of(groups, {hop(0, false)}).empty());
  CHECK(headline_of({main_group()}, {}).empty());
  CHECK_FALSE(contains(headline_of({main_group()}, {hop(0, false)}), "busiest"));
}

TEST_CASE("what a group does most of its time is in the chain, and waiting for a CPU is work") {
  const auto waits = [](double running, double run_queue, double blocked, std::size_t unsampled) {
    std::vector<thread_activity> groups{main_group()};
    groups[0].running = running;
    groups[0].run_queue = run_queue;
    groups[0].blocked.push_back(wait(wait_reason::sleep));
    groups[0].blocked[0].share = blocked;
    groups[0].unsampled = unsampled;
    const chain_hop usual = wait_chain({}, groups, 0).front();
    CHECK(std::abs(usual.share - (usual.wait ? blocked : running + run_queue)) < 1e-9);
    return usual.wait.has_value();
  };
  CHECK(waits(0.25, 0, 0.5, 0));
  CHECK_FALSE(waits(0.25, 0, 0.25, 0));
  CHECK(waits(0.125, 0.5, 0.25, 0));
  CHECK_FALSE(waits(0.125, 0.625, 0.25, 0));
  CHECK_FALSE(waits(0.25, 0, 0.5, 1));  // too short-lived to know
}

TEST_CASE("a chain goes on to a thread that it has not passed, if there is one") {
  // Main and `b` wait for any thread of the pool `a`: the first waits for a lock of the second,
  // which waits for `b`, and the third runs.
  built_samples of(1000);
  for (int i = 0; i < 5; ++i) of.thread(500);
  const auto waits = [&](std::size_t thread, wait_reason reason) -> thread_sample& {
    return of.waits(thread, {{"wait", 1}}, 20, thread_begins, reason);
  };
  waits(0, wait_reason::condition);
  waits(1, wait_reason::lock).holder = of.threads[2].tid;
  waits(2, wait_reason::condition);
  waits(4, wait_reason::condition);
  std::vector<thread_activity> groups{main_group(), group_in("a", 3), group_in("b")};
  groups[0].members = {0};
  groups[1].members = {1, 2, 3};
  groups[2].members = {4};
  const auto add_wait = [&](std::size_t group, std::size_t other, std::size_t sample,
                            double share) {
    wait_for(groups[group], other);
    groups[group].running = 0.1;
    groups[group].blocked.back().share = share;
    groups[group].blocked.back().samples = {sample};
  };
  add_wait(0, 1, 0, 0.9);
  add_wait(1, 1, 1, 0.45);
  add_wait(1, 2, 2, 0.45);
  add_wait(2, 1, 3, 0.9);
  of.rounds.resize(20);
  for (sampled_round& round : of.rounds) {
    round.states = {{0, 0}, {1, 1}, {2, 2}, {3, sampled_round::runs}, {4, 3}};
  }
  const std::vector<chain_hop> chain = wait_chain(of, groups, 0);
  REQUIRE(chain.size() == 5);
  CHECK(chain[1].wait == std::optional<std::size_t>(0));
  CHECK(chain[3].group == 2);
  CHECK(chain[4].group == 1);
  CHECK_FALSE(chain[4].wait);
}
