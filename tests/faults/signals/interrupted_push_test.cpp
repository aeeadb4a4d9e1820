// Handlers that interrupt the storing of a record at each of its instructions: by single steps of
// the processor. Some return, others leave by siglongjmp.

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregates.hpp"
#include "catch.hpp"
#include "lotus/aggregates/aggregates.hpp"
#include "lotus/lotus.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread_ring.hpp"
#include "support.hpp"

#if defined(__x86_64__)

using support::count_named;

namespace {

using place_of_storing = std::uintptr_t (*)();

std::uintptr_t record_storing() {
  return lotus::detail::this_ring->storing.load();
}
std::uintptr_t aggregate_storing() {
  return lotus::detail::aggregates_of(*lotus::detail::this_ring).storing.load();
}

/// Steps through what this thread does until it has stored one more record, or has jumped out; not
/// further, as a step with signals blocked would be its end. For handlers, so all of it is static.
struct steps {
  static inline volatile bool stepping = false;
  static inline place_of_storing storing = record_storing;
  static inline volatile int until = 0;  ///< so many steps within the storing, then `act`
  static inline volatile bool stored = false;
  static inline volatile bool acted = false;
  static inline void (*act)() = nullptr;

  static void trap(int, siginfo_t*, void* context) {
    constexpr greg_t trap_flag = 0x100;
    greg_t& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
    const bool stores = storing() != 0;
    if (stored && !stores) stepping = false;
    stored = stores;
    flags = stepping ? flags | trap_flag : flags & ~trap_flag;
    if (!stepping || !stores) return;
    if (until > 0) {
      until = until - 1;
      return;
    }
    stepping = false;
    flags &= ~trap_flag;
    acted = true;
    act();
  }

  /// @param on_other_stack  handlers run on a stack of their own.
  static void install(bool on_other_stack) {
    static std::vector<char> other(std::size_t{1} << 18U);
    stack_t stack{};
    stack.ss_sp = other.data();
    stack.ss_size = other.size();
    stack.ss_flags = on_other_stack ? 0 : SS_DISABLE;
    sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_sigaction = trap;
    action.sa_flags = SA_SIGINFO | (on_other_stack ? SA_ONSTACK : 0);
    sigaction(SIGTRAP, &action, nullptr);
  }

  static void begin(place_of_storing where, int steps_within, void (*what)()) {
    storing = where;
    until = steps_within;
    act = what;
    stored = acted = false;
    stepping = true;
    raise(SIGTRAP);
  }
};

lotus::options options_for(const support::temp_directory& run) {
  lotus::options o;
  o.log_file = run.prefix();
  o.drain_interval_ms = 1'000'000;
  o.cpu_time = false;  // whose records would be dropped and counted as well
  o.on_message = [](const char*) {};
  return o;
}

__attribute__((noinline)) void record_once() {
  LOTUS_SCOPE("Interrupted");
}
__attribute__((noinline)) void aggregate_once() {
  LOTUS_SCOPE_AGGREGATED("Counted");
}

sigjmp_buf before;  // NOLINT
void jump() {
  siglongjmp(before, 1);
}

/// From deeper on the stack than what was interrupted.
__attribute__((noinline)) void record_deeper(int depth) {
  volatile char room[3000];
  room[0] = static_cast<char>(depth);
  if (depth > 0) return record_deeper(depth - 1);
  LOTUS_SCOPE("After");
  room[1] = room[0];
}

volatile int jumps = 0;
volatile int ended = 0;

}  // namespace

TEST_CASE("a handler that comes between the two halves of storing keeps to its own lane") {
  const support::temp_directory run;
  const bool on_other_stack = GENERATE(false, true);
  const std::uint64_t dropped_before = lotus::dropped();
  REQUIRE(lotus::start(options_for(run)));
  record_once();
  lotus::flush();
  steps::install(on_other_stack);
  steps::begin(record_storing, 2, [] {
    for (int i = 0; i < 70; ++i) LOTUS_SCOPE("Nested");
  });
  record_once();
  CHECK(steps::acted);
  { LOTUS_SCOPE("Last"); }
  lotus::stop();
  const auto lines = support::read_logs(run.path());
  CHECK(count_named(lines, "SInterrupted") == 2);
  CHECK(count_named(lines, "SLast") == 1);
  CHECK(count_named(lines, "SNested") == lotus::detail::interrupt_lane_records);
  // What did not fit was counted.
  CHECK(lotus::dropped() - dropped_before == 70 - lotus::detail::interrupt_lane_records);
}

TEST_CASE("a handler that leaves a push for good, anywhere in it: the thread records on") {
  const support::temp_directory run;
  const bool on_other_stack = GENERATE(false, true);
  const int deeper = GENERATE(-1, 0, 8);
  CAPTURE(on_other_stack, deeper);
  const std::uint64_t dropped_before = lotus::dropped();
  REQUIRE(lotus::start(options_for(run)));
  record_once();
  steps::install(on_other_stack);
  jumps = 0;
  ended = 1;
  for (volatile int k = 0;; k = k + 1) {
    if (sigsetjmp(before, 1) == 0) {
      steps::begin(record_storing, k, jump);
      record_once();
      ended = ended + 1;
      if (!steps::acted) break;
    } else {
      jumps = jumps + 1;
    }
    for (int i = 0; i < 100; ++i) {
      if (deeper < 0) {
        LOTUS_SCOPE("After");
      } else {
        record_deeper(deeper);
      }
    }
  }
  lotus::stop();
  CHECK(jumps >= 3);
  const auto lines = support::read_logs(run.path());
  const auto interrupted = static_cast<int>(count_named(lines, "SInterrupted"));
  CHECK(interrupted >= ended);
  CHECK(interrupted <= ended + jumps);
  CHECK(count_named(lines, "SAfter") == static_cast<std::size_t>(100 * jumps));
  CHECK(lotus::dropped() == dropped_before);
}

TEST_CASE("a handler that leaves the push of another handler for good") {
  const support::temp_directory run;
  const std::uint64_t dropped_before = lotus::dropped();
  REQUIRE(lotus::start(options_for(run)));
  record_once();
  steps::install(false);
  // What the inner handler would find, and jump over.
  lotus::detail::thread_ring& ring = *lotus::detail::this_ring;
  steps::begin(record_storing, 2, [] {
    lotus::detail::this_ring->storing_nested.store(lotus::detail::stack_pointer());
    jump();
  });
  if (sigsetjmp(before, 1) == 0) record_once();
  CHECK(steps::acted);
  CHECK(ring.storing_nested.load() != 0);
  record_once();
  CHECK(ring.storing_nested.load() == 0);
  steps::begin(record_storing, 2, [] { LOTUS_SCOPE("Nested"); });
  record_once();
  lotus::stop();
  const auto lines = support::read_logs(run.path());
  CHECK(count_named(lines, "SNested") == 1);
  CHECK(lotus::dropped() == dropped_before);
}

TEST_CASE("a handler that leaves an aggregated call for good, anywhere in it: sums add up") {
  const support::temp_directory run;
  const std::uint64_t dropped_before = lotus::dropped();
  REQUIRE(lotus::start(options_for(run)));
  record_once();
  for (int i = 0; i < 10; ++i) aggregate_once();
  steps::install(false);
  jumps = 0;
  ended = 10;
  for (volatile int k = 0;; k = k + 1) {
    if (sigsetjmp(before, 1) == 0) {
      steps::begin(aggregate_storing, k, jump);
      aggregate_once();
      ended = ended + 1;
      if (!steps::acted) break;
    } else {
      jumps = jumps + 1;
    }
    for (int i = 0; i < 10; ++i) aggregate_once();
    ended = ended + 10;
  }
  lotus::stop();
  CHECK(jumps >= 10);
  const auto counted = support::aggregate_of(run.path(), "SCounted").count;
  CHECK(counted >= static_cast<std::uint64_t>(ended));
  CHECK(counted <= static_cast<std::uint64_t>(ended + jumps));
  CHECK(lotus::dropped() == dropped_before);
}

#else

TEST_CASE("handlers that interrupt the storing of a record") {
  lotus_test::skip("only x86-64 is stepped through here");
}

#endif
