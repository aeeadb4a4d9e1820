// Tests that a snapshot contains the counts of aggregated operations up to the time of the
// snapshot.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "aggregates.hpp"
#include "catch.hpp"
#include "kept/snapshot_run.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using namespace std::chrono_literals;
using support::aggregate_of;
using support::snapshot_run;

namespace fs = std::filesystem;

namespace {

void call(int n) {
  for (int i = 0; i < n; ++i) LOTUS_SCOPE_AGGREGATED("Token");
}

/// A child process that records to the same run as the test, calls an aggregated operation `calls`
/// times, and waits until it is killed.
class calling_child {
 public:
  /// @param ends  whether the child kills itself after its calls instead of waiting.
  calling_child(int calls, bool ends) {
    REQUIRE(pipe(done_) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      alarm(250);
      call(calls);
      if (ends) raise(SIGKILL);
      if (write(done_[1], "", 1) != 1) _exit(1);
      pause();
      _exit(0);
    }
    char byte = 0;
    if (ends) {
      waitpid(pid_, nullptr, 0);
      pid_ = -1;
    } else {
      REQUIRE(read(done_[0], &byte, 1) == 1);
    }
  }
  ~calling_child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(done_[0]);
    close(done_[1]);
  }
  calling_child(const calling_child&) = delete;
  calling_child& operator=(const calling_child&) = delete;

 private:
  pid_t pid_ = -1;
  int done_[2] = {};
};

}  // namespace

TEST_CASE("a snapshot counts all calls that ended before it, and none that ended after it") {
  const snapshot_run here;
  REQUIRE(lotus::start(here.options()));
  call(1000);
  std::thread([] { call(50); }).join();
  {
    LOTUS_LOADER("val");
    call(7);
  }
  REQUIRE(lotus::snapshot("first"));
  call(300);
  REQUIRE(lotus::snapshot("second"));
  call(1);
  lotus::stop();
  const auto found = here.snapshots();
  REQUIRE(found.size() == 2);
  CHECK(aggregate_of(found[0], "SToken").count == 1050);
  CHECK(aggregate_of(found[0] / "val", "SToken").count == 7);
  CHECK(aggregate_of(found[1], "SToken").count == 1350);
  CHECK(aggregate_of(found[1] / "val", "SToken").count == 7);
  CHECK(aggregate_of(here.run, "SToken").count == 1351);
}

TEST_CASE("a snapshot counts the calls of an earlier recording of the process once") {
  const snapshot_run here;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(lotus::start(here.options()));
    {
      LOTUS_LOADER("val");
      call(10);
    }
    call(100);
    if (i == 0) lotus::stop();
  }
  REQUIRE(lotus::snapshot("x"));
  lotus::stop();
  CHECK(aggregate_of(here.snapshots().at(0), "SToken").count == 200);
  CHECK(aggregate_of(here.snapshots().at(0) / "val", "SToken").count == 20);
  CHECK(aggregate_of(here.run, "SToken").count == 200);
}

TEST_CASE("a snapshot during calls has sums of one moment, and counts each call once") {
  const snapshot_run here;
  REQUIRE(lotus::start(here.options()));
  constexpr std::size_t threads = 3;
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> ended[threads] = {};
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      const auto called = [](const std::string& name) { LOTUS_SCOPE_AGGREGATED(name); };
      const std::string name = "T" + std::to_string(t);
      const std::string other = "Other" + std::to_string(t);
      for (std::uint64_t n = 0; !over;) {
        called(name);
        ended[t] = ++n;
        // New names make the library add blocks to the ring file while snapshots are created.
        called(other + "_" + std::to_string(n / 1000 % 500));
      }
    });
  }
  constexpr int snapshots = 20;
  std::vector<std::vector<std::uint64_t>> before;
  std::vector<std::vector<std::uint64_t>> after;
  const auto counts = [&] {
    return std::vector<std::uint64_t>(std::begin(ended), std::end(ended));
  };
  for (int i = 0; i < snapshots; ++i) {
    std::this_thread::sleep_for(10ms);
    before.push_back(counts());
    REQUIRE(lotus::snapshot("s"));
    after.push_back(counts());
  }
  over = true;
  for (std::thread& t : all) t.join();
  lotus::stop();
  const auto found = here.snapshots();
  REQUIRE(found.size() == snapshots);
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (std::size_t t = 0; t < threads; ++t) {
      // aggregate_of() throws if the buckets do not add up to the count.
      const auto sum = aggregate_of(found[i], "ST" + std::to_string(t));
      CAPTURE(i, t, sum.count);
      CHECK(sum.count >= before[i][t]);
      CHECK(sum.count <= after[i][t] + 1);
      CHECK(sum.self_ns <= sum.total_ns);
    }
  }
  for (std::size_t t = 0; t < threads; ++t) {
    CHECK(aggregate_of(here.run, "ST" + std::to_string(t)).count == ended[t]);
  }
}

TEST_CASE("a snapshot counts the calls of other running processes and of a killed one") {
  const snapshot_run here;
  REQUIRE(lotus::start(here.options()));
  call(5);
  const calling_child lives(100, false);
  const calling_child killed(2000, true);
  REQUIRE(lotus::snapshot("x"));
  lotus::stop();
  CHECK(aggregate_of(here.snapshots().at(0), "SToken").count == 2105);
}

TEST_CASE("snapshots by signal, by request and by a long wait count calls too") {
  const snapshot_run here;
  lotus::options o = here.options();
  const int how = GENERATE(0, 1, 2);
  CAPTURE(how);
  o.snapshot_signal = how == 0 ? SIGUSR2 : 0;
  o.snapshot_when_wait_ms = how == 2 ? 50 : 0;
  REQUIRE(lotus::start(o));
  call(123);
  if (how == 0) raise(SIGUSR2);
  if (how == 1) std::ofstream(here.run / ".lotus_snapshot_request") << "now";
  if (how == 2) {
    LOTUS_BATCH_WAIT(1);
    std::this_thread::sleep_for(100ms);
  }
  const fs::path snapshot = here.wait_for_one();
  lotus::stop();
  CHECK(aggregate_of(snapshot, "SToken").count == 123);
}
