// Tests the snapshots for which the program does not call a function: after a signal, after a long
// wait, and at the request of another process.
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

TEST_CASE("a signal triggers a snapshot, and the previous handler is called too") {
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

TEST_CASE("a long wait triggers a snapshot, even if it never ends") {
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
    lotus::batch_wait wait;
    CHECK(has_end(here.wait_for_one(), "-wait"));
  }
  CHECK(has_end(here.wait_for_one(), "-wait"));
  {
    LOTUS_BATCH_WAIT(12);
    std::this_thread::sleep_for(300ms);
  }
  lotus::stop();
  CHECK(here.snapshots().size() == 1);  // there is at most one snapshot per minute
}

TEST_CASE("the first wait of a thread can trigger a snapshot") {
  const snapshot_run here;
  lotus::options o = here.options();
  o.snapshot_when_wait_ms = 100;
  REQUIRE(lotus::start(o));
  std::thread([&] {
    lotus::batch_wait wait;
    CHECK(has_end(here.wait_for_one(), "-wait"));
  }).join();
  lotus::stop();
}

TEST_CASE("a request file from another process triggers a snapshot") {
  const snapshot_run here;
  REQUIRE(lotus::start(here.options()));
  consume(0, 10);
  // A file without text is a request, too, although a file that was just created may get its text.
  const std::string reason = GENERATE("../slow", "");
  std::ofstream(here.run / ".lotus_snapshot_request") << reason;
  const fs::path snapshot = here.wait_for_one();
  lotus::stop();
  CHECK(has_end(snapshot, reason.empty() ? "Z-" : "Z-..-slow"));
  CHECK(names_in(snapshot).size() == 10);
  CHECK_FALSE(fs::exists(here.run / ".lotus_snapshot_request"));
}
