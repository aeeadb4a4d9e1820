// Tests aggregated operations, whose calls are counted instead of recorded, in processes that fork
// and in signal handlers.
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "aggregates.hpp"
#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using support::aggregate_of;

namespace {

void calls(int n) {
  for (int i = 0; i < n; ++i) LOTUS_SCOPE_AGGREGATED("Token");
}

}  // namespace

TEST_CASE("a forked child counts from 0, and its parent continues its counts") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  calls(1000);
  for (int i = 0; i < 3; ++i) {
    LOTUS_SCOPE_AGGREGATED("Around the fork");
    const pid_t child = fork();
    if (child == 0) {
      calls(50);
      lotus::stop();
      _exit(0);
    }
    calls(7);
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  lotus::stop();
  CHECK(aggregate_of(run.path(), "SToken").count == 1000 + 3 * 57);
  CHECK(aggregate_of(run.path(), "SAround the fork").count == 3);
  CHECK(support::count_files(run.path(), ".lotus_aggregated_") == 4);
}

namespace {

std::atomic<int> handled{0};

void handler(int) {
  LOTUS_SCOPE_AGGREGATED("Handled");
  ++handled;
}

/// Lets handler() handle SIGALRM, and counts from 0. Returns how the signal was handled before.
struct sigaction handle_signals() {
  handled = 0;
  struct sigaction action {};
  action.sa_handler = handler;
  struct sigaction before {};
  sigaction(SIGALRM, &action, &before);
  return before;
}

}  // namespace

TEST_CASE("calls in a signal handler that interrupts a call are counted") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  const struct sigaction before = handle_signals();
  const std::uint64_t dropped_before = lotus::dropped();
  int called = 0;
  // Each signal is asked for after the one before, so that a thread that gets no CPU for long is
  // not interrupted by many of them during one call.
  for (int signals = 0; signals < 2000; ++signals) {
    const itimerval once{{0, 0}, {0, 50}};
    setitimer(ITIMER_REAL, &once, nullptr);
    while (handled == signals) {
      calls(100);
      called += 100;
    }
  }
  sigaction(SIGALRM, &before, nullptr);
  calls(1);
  lotus::stop();
  CHECK(aggregate_of(run.path(), "SToken").count == static_cast<std::uint64_t>(called) + 1);
  CHECK(aggregate_of(run.path(), "SHandled").count == 2000);
  CHECK(lotus::dropped() == dropped_before);
}

TEST_CASE("where many handlers interrupt one call, those that are not counted are dropped ones") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  const std::uint64_t dropped_before = lotus::dropped();
  const struct sigaction before = handle_signals();
  const itimerval often{{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &often, nullptr);
  while (handled < 2000) calls(100);
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  calls(1);
  lotus::stop();
  const std::uint64_t dropped = lotus::dropped() - dropped_before;
  CHECK(aggregate_of(run.path(), "SHandled").count + dropped ==
        static_cast<std::uint64_t>(handled.load()));
}
