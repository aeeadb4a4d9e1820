// What makes a snapshot without a call: a signal, a long wait, who asks from outside.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "catch.hpp"
#include "kept/snapshot_run.hpp"
#include "lotus/lotus.hpp"

using namespace std::chrono_literals;
using support::consume;
using support::has_end;
using support::names_in;
using support::snapshot_run;

namespace fs = std::filesystem;

TEST_CASE("a signal makes one, and what handled it before is called too") {
  const snapshot_run here;
  lotus::options o = here.options();
  o.snapshot_signal = SIGUSR2;
  static std::atomic<int> handled{0};
  struct sigaction before {};
  before.sa_handler = [](int) { ++handled; };
  REQUIRE(sigaction(SIGUSR2, &before, nullptr) == 0);
  REQUIRE(lotus::start(o));
  consume(0, 10);
  raise(SIGUSR2);
  const fs::path snapshot = here.wait_for_one();
  lotus::stop();
  CHECK(has_end(snapshot, "-signal"));
  CHECK(names_in(snapshot).size() == 10);
  CHECK(handled == 1);
  struct sigaction after {};
  sigaction(SIGUSR2, nullptr, &after);
  CHECK(after.sa_handler == before.sa_handler);
  signal(SIGUSR2, SIG_DFL);
}

TEST_CASE("a wait that takes long makes one, also one that does not end") {
  const snapshot_run here;
  lotus::options o = here.options();
  o.snapshot_when_wait_ms = 200;
  REQUIRE(lotus::start(o));
  consume(0, 10);
  {
    LOTUS_BATCH_WAIT(10);
    std::this_thread::sleep_for(20ms);
  }
  const bool ends = GENERATE(true, false);
  CHECK(here.snapshots().empty());
  if (ends) {
    LOTUS_BATCH_WAIT(11);
    std::this_thread::sleep_for(300ms);
  } else {
    lotus::wait_for_batch wait;
    CHECK(has_end(here.wait_for_one(), "-wait"));
  }
  CHECK(has_end(here.wait_for_one(), "-wait"));
  {
    LOTUS_BATCH_WAIT(12);
    std::this_thread::sleep_for(300ms);
  }
  lotus::stop();
  CHECK(here.snapshots().size() == 1);  // one a minute
}

TEST_CASE("a thread's first wait is known") {
  const snapshot_run here;
  lotus::options o = here.options();
  o.snapshot_when_wait_ms = 100;
  REQUIRE(lotus::start(o));
  std::thread([&] {
    lotus::wait_for_batch wait;
    CHECK(has_end(here.wait_for_one(), "-wait"));
  }).join();
  lotus::stop();
}

TEST_CASE("who asks from outside gets one") {
  const snapshot_run here;
  REQUIRE(lotus::start(here.options()));
  consume(0, 10);
  std::ofstream(here.run / ".lotus_snapshot_request") << "../slow";
  const fs::path snapshot = here.wait_for_one();
  lotus::stop();
  CHECK(has_end(snapshot, "Z-..-slow"));
  CHECK(names_in(snapshot).size() == 10);
  CHECK_FALSE(fs::exists(here.run / ".lotus_snapshot_request"));
}
