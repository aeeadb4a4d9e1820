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

/// Returns whether a handler may record. Handlers that interrupt the storing of a record share a
/// lane of 64 records, which is emptied at the latest when the ring, also of 64 records, is full.
/// On a slow machine, more signals may arrive in that time, so only the first handlers record: of
/// two records each, in at most two of these intervals.
bool may_record() {
  constexpr std::uint64_t scopes = 64;
  constexpr int max_handlers = 16;
  static std::uint64_t interval = 0;
  static int in_interval = 0;
  if (interval != scopes_begun / scopes) {
    interval = scopes_begun / scopes;
    in_interval = 0;
  }
  return in_interval++ < max_handlers;
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
