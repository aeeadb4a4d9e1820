// Tests scopes in signal handlers that interrupt scopes of the same thread.

#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <string>
#include <thread>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using support::count_named;

namespace {

std::atomic<std::uint64_t> handled{0};
std::atomic<std::uint64_t> scopes_begun{0};

/// Returns whether a handler may record. All handlers that interrupt one scope share a lane that
/// holds 64 records. On a slow machine, more signals than that may arrive during one scope, so only
/// the first handlers record.
bool may_record() {
  constexpr int max_within_a_scope = 16;
  static std::uint64_t scope = 0;
  static int within_scope = 0;
  if (scope != scopes_begun) {
    scope = scopes_begun;
    within_scope = 0;
  }
  return within_scope++ < max_within_a_scope;
}

void handler(int) {
  if (!may_record()) return;
  { LOTUS_SCOPE("InHandler"); }
  { LOTUS_SCOPE("InHandlerToo"); }
  handled.fetch_add(1, std::memory_order_relaxed);
}

class timer_signals {
 public:
  explicit timer_signals(int every_us) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often{{0, every_us}, {0, every_us}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~timer_signals() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    signal(SIGALRM, SIG_IGN);
  }
};

}  // namespace

TEST_CASE("scopes in a signal handler do not corrupt the ring or deadlock, and none is lost") {
  const support::temp_directory run{support::in_memory()};
  lotus::options o;
  o.log_file = run.prefix();
  o.ring_records = 64;  // a small ring, so that handlers also interrupt drains
  o.on_message = [](const char*) {};
  handled = 0;
  const std::uint64_t dropped_before = lotus::dropped();
  REQUIRE(lotus::start(o));
  std::uint64_t own = 0;
  {
    const timer_signals signals{50};
    while (handled < 5'000) {
      scopes_begun = ++own;
      LOTUS_SCOPE("Interrupted");
    }
  }
  lotus::stop();
  const auto lines = support::read_logs(run.path());
  CHECK(count_named(lines, "SInterrupted") == own);
  CHECK(count_named(lines, "SInHandler") == handled);
  CHECK(count_named(lines, "SInHandlerToo") == handled);
  CHECK(lotus::dropped() == dropped_before);
}
