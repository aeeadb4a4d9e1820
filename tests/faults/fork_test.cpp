// Tests that both parent and child continue to record after a fork, that no record is lost or
// stored twice, and that neither process hangs.

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "recording.hpp"
#include "support.hpp"

using support::count_named;
using support::ended_well;
using support::options_for;
using support::read_logs;
using support::record;
using support::recover_all;

namespace {

/// Forks a child that is killed after 60 s, so that the test ends even if the child hangs.
template <class Body>
pid_t fork_child(Body&& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(250);
    body();
    exit(0);
  }
  return pid;
}

}  // namespace

TEST_CASE("a forked child and its parent record to separate files") {
  const support::temp_directory run;
  REQUIRE(lotus::start(options_for(run)));
  record("before", 10);
  const pid_t child = fork_child([] { record("child", 20); });
  record("parent", 30);
  CHECK(ended_well(child));
  lotus::stop();
  const auto lines = read_logs(run.path());
  CHECK(lines.size() == 60);
  CHECK(count_named(lines, "Sbefore") == 10);
  for (const auto& l : lines) {
    CHECK(l.tid == static_cast<std::uint32_t>(l.name == "Schild" ? child : getpid()));
  }
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
}

TEST_CASE("a scope that is open at the fork ends once in the parent and once in the child") {
  const support::temp_directory run;
  REQUIRE(lotus::start(options_for(run)));
  pid_t child = -1;
  {
    LOTUS_SCOPE("Open");
    child = fork();
  }
  if (child == 0) exit(0);
  CHECK(ended_well(child));
  lotus::stop();
  const auto lines = read_logs(run.path());
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].start_ns == lines[1].start_ns);
  CHECK(lines[0].tid != lines[1].tid);
}

TEST_CASE("nested forks from worker threads lose no record while other threads record and drain") {
  const support::temp_directory run;
  auto o = options_for(run);
  o.drain_interval_ms = 1;
  o.ring_records = 128;
  REQUIRE(lotus::start(o));
  std::atomic<bool> done{false};
  std::atomic<int> busy_count{0};
  std::vector<std::thread> busy;
  // Limits the number of records of the busy threads, because the test may use only 20 MB of disk
  // space. On a busy machine, forking takes so long that these threads would record too much.
  constexpr int max_busy = 3'000'000;
  for (int t = 0; t < 2; ++t) {
    busy.emplace_back([&] {
      while (!done) {
        if (busy_count >= max_busy) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          continue;
        }
        record("busy", 200);  // more than the ring holds
        busy_count += 200;
        // Reading millions of lines would take most of the test's time.
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  // Forks only while no thread starts or ends. Otherwise a child under qemu 7 may wait forever for
  // a lock of the emulator.
  constexpr int forker_count = 3;
  pthread_barrier_t all_live;
  REQUIRE(pthread_barrier_init(&all_live, nullptr, forker_count) == 0);
  std::vector<std::thread> forkers;
  std::atomic<int> good{0};
  for (int t = 0; t < forker_count; ++t) {
    forkers.emplace_back([&] {
      pthread_barrier_wait(&all_live);
      for (int i = 0; i < 15; ++i) {
        record("forker", 3);
        const pid_t child = fork_child([] {
          record("child", 200);
          const pid_t grandchild = fork_child([] { record("grandchild", 5); });
          if (!ended_well(grandchild)) exit(1);
          std::thread{[] { record("thread_of_child", 7); }}.join();
        });
        if (ended_well(child)) ++good;
      }
      pthread_barrier_wait(&all_live);
    });
  }
  for (auto& t : forkers) t.join();
  pthread_barrier_destroy(&all_live);
  done = true;
  for (auto& t : busy) t.join();
  lotus::stop();
  CHECK(good == 45);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Sbusy") == static_cast<std::size_t>(busy_count.load()));
  CHECK(count_named(lines, "Sforker") == 135);
  CHECK(count_named(lines, "Schild") == 45 * 200);
  CHECK(count_named(lines, "Sgrandchild") == 45 * 5);
  CHECK(count_named(lines, "Sthread_of_child") == 45 * 7);
  CHECK(lotus::dropped() == 0);
}

TEST_CASE("records of children that _exit or exec can be recovered, and the parent loses none") {
  const support::temp_directory run;
  auto o = options_for(run);
  o.drain_interval_ms = 1'000'000;
  REQUIRE(lotus::start(o));
  record("parent", 1);
  const pid_t quitter = fork();
  if (quitter == 0) {
    record("quitter", 11);
    _exit(0);
  }
  CHECK(ended_well(quitter));
  const pid_t runner = fork();
  if (runner == 0) {
    record("runner", 12);
    execl("/bin/true", "true", nullptr);
    _exit(1);
  }
  CHECK(ended_well(runner));
  record("parent", 1);
  lotus::stop();
  recover_all(run);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Sparent") == 2);
  CHECK(count_named(lines, "Squitter") == 11);
  CHECK(count_named(lines, "Srunner") == 12);
  CHECK(lines.size() == 25);
}

TEST_CASE("a child can stop and start recording independently of its parent") {
  const support::temp_directory run;
  const support::temp_directory other;
  REQUIRE(lotus::start(options_for(run)));
  record("parent", 2);
  const pid_t child = fork_child([&] {
    record("first", 3);
    lotus::stop();
    record("unrecorded", 3);
    if (!lotus::start(options_for(other))) exit(1);
    record("second", 4);
  });
  CHECK(ended_well(child));
  record("parent", 2);
  lotus::stop();
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Sparent") == 4);
  CHECK(count_named(lines, "Sfirst") == 3);
  CHECK(lines.size() == 7);
  CHECK(count_named(read_logs(other.path()), "Ssecond") == 4);
}

TEST_CASE("a program that does not record can fork") {
  const pid_t child = fork_child([] { record("nothing", 3); });
  CHECK(ended_well(child));
}
