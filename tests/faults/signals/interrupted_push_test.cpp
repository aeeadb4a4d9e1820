// Tests signal handlers that interrupt the storing of a record at each of its instructions, by
// single-stepping the processor. Some handlers return, others leave by siglongjmp.

#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "aggregates.hpp"
#include "catch.hpp"
#include "drain_thread.hpp"
#include "lotus/aggregates/aggregates.hpp"
#include "lotus/lotus.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread_ring.hpp"
#include "messages.hpp"
#include "signals/without_tables.hpp"
#include "support.hpp"

#if defined(__x86_64__)

using support::count_named;

namespace {

  #if defined(__SANITIZE_ADDRESS__)
constexpr bool has_sanitizer = true;
  #elif defined(__has_feature)
constexpr bool has_sanitizer = __has_feature(address_sanitizer);
  #else
constexpr bool has_sanitizer = false;
  #endif

using place_of_storing = std::uintptr_t (*)();

std::uintptr_t record_storing() {
  return lotus::detail::this_ring->storing.load();
}
std::uintptr_t aggregate_storing() {
  return lotus::detail::aggregates_of(*lotus::detail::this_ring).storing.load();
}

/// Single-steps the calling thread until it has stored one more record or has jumped out of a
/// handler. The stepping must not continue after that: a step while signals are blocked would kill
/// the process. All members are static, because signal handlers use this class.
struct steps {
  static inline volatile bool stepping = false;
  static inline place_of_storing storing = record_storing;
  /// Number of steps that remain inside the code that stores a record. When it is 0, `act` is
  /// called.
  static inline volatile int until = 0;
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

  /// @param on_other_stack  whether signal handlers run on their own stack.
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

  /// Returns the distance, in steps, between the instructions that are interrupted. It is 1, so
  /// that each instruction is interrupted once, unless there are very many, as with a sanitizer:
  /// the time of the test grows with the square of their number.
  static int stride(place_of_storing where, void (*store_once)()) {
    constexpr int all = std::numeric_limits<int>::max();
    begin(where, all, nullptr);
    store_once();
    const int within = all - until;
    const int many = support::rounds(300);
    return within > many ? within * 6 / many : 1;
  }
};

lotus::options options_for(const support::temp_directory& run) {
  lotus::options o;
  o.log_file = run.prefix();
  o.drain_interval_ms = 1'000'000;
  o.cpu_time = false;  // CPU time records would also be dropped and counted
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

/// Records from a function that is deeper on the stack than the interrupted one.
__attribute__((noinline)) void record_deeper(int depth) {
  volatile char room[3000];
  room[0] = static_cast<char>(depth);
  if (depth > 0) return record_deeper(depth - 1);
  LOTUS_SCOPE("After");
  room[1] = room[0];
}

ucontext_t fibre;
ucontext_t preempted;
ucontext_t outside;

volatile int jumps = 0;
volatile int ended = 0;

}  // namespace

// The next two test cases must be the first ones, because their messages are printed once per
// process.
TEST_CASE("records that preemptive fibres may have lost are reported") {
  if (has_sanitizer) return lotus_test::skip("a sanitizer must be told of other stacks");
  const support::temp_directory run;
  const pid_t pid = fork();  // so that the next test case gets its message too
  if (pid == 0) {
    auto o = options_for(run);
    o.on_message = &support::collected_messages::add;
    support::collected_messages::clear();
    if (!lotus::start(o)) _exit(1);
    record_once();
    static std::vector<char> stack(std::size_t{64} << 10U);
    getcontext(&fibre);
    fibre.uc_stack.ss_sp = stack.data();
    fibre.uc_stack.ss_size = stack.size();
    fibre.uc_link = &outside;
    makecontext(&fibre, record_once, 0);
    // The handler that interrupts the fibre's scope continues outside of it, on a stack with higher
    // addresses, where it does not look like a handler.
    steps::install(false);
    steps::begin(record_storing, 2, [] { swapcontext(&preempted, &outside); });
    swapcontext(&outside, &fibre);
    for (int i = 0; i < 100; ++i) LOTUS_SCOPE("After");
    swapcontext(&outside, &preempted);
    { LOTUS_SCOPE("Last"); }
    lotus::stop();
    _exit(steps::acted && support::collected_messages::count("switching fibres") == 1 ? 0 : 2);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("without unwind tables, a thread records on at the same depth of the stack") {
  const support::temp_directory run;
  const std::uint64_t dropped_before = lotus::dropped();
  support::collected_messages::clear();
  auto o = options_for(run);
  o.on_message = &support::collected_messages::add;
  o.drain_interval_ms = 60'000;  // only flush() makes room
  REQUIRE(lotus::start(o));
  record_without_tables(0);
  support::wait_until_drain_thread_rests();
  steps::install(false);
  volatile int outer = 0;
  for (; outer < 10; outer = outer + 1) {
    steps::begin(record_storing, 2, jump);
    if (sigsetjmp(before, 1) == 0) record_without_tables(0);
    CHECK(steps::acted);
    CHECK(lotus::detail::this_ring->storing.load() != 0);
    // Deeper on the stack, the caller may be a handler that interrupted the storing of a record.
    // The lane of handlers has room for 64 records.
    const std::uint64_t dropped = lotus::dropped();
    for (int i = 0; i < 70; ++i) record_without_tables(8);
    CHECK(lotus::dropped() - dropped == 6);
    CHECK(support::collected_messages::count("records of signal handlers are dropped") == 1);
    for (int i = 0; i < 1000; ++i) record_without_tables(0);
    CHECK(lotus::dropped() - dropped == 6);
    lotus::flush();
  }
  lotus::stop();
  const auto lines = support::read_logs(run.path());
  CHECK(count_named(lines, "SDeep") == 10 * 64);
  CHECK(count_named(lines, "SShallow") >= 10'001);
  CHECK(count_named(lines, "SShallow") <= 10'011);
  CHECK(lotus::dropped() - dropped_before == 10 * 6);
}

TEST_CASE("a handler that interrupts the storing of a record stores into a lane of its own") {
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
  // The lane has room for interrupt_lane_records records of handlers. More are stored if the drain
  // thread has emptied the lane in the meantime.
  const std::size_t nested = count_named(lines, "SNested");
  CHECK(nested >= lotus::detail::interrupt_lane_records);
  // The records for which the lane had no room must have been counted as dropped.
  CHECK(nested + (lotus::dropped() - dropped_before) == 70);
}

TEST_CASE("a thread keeps recording after a handler leaves the storing of a record by siglongjmp") {
  const support::temp_directory run;
  const bool on_other_stack = GENERATE(false, true);
  const int deeper = GENERATE(-1, 0, 8);
  CAPTURE(on_other_stack, deeper);
  const std::uint64_t dropped_before = lotus::dropped();
  REQUIRE(lotus::start(options_for(run)));
  record_once();
  steps::install(on_other_stack);
  jumps = 0;
  ended = 2;
  const int stride = steps::stride(record_storing, record_once);
  for (volatile int k = 0;; k = k + stride) {
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

TEST_CASE("a thread keeps recording after a handler leaves another handler's push by siglongjmp") {
  const support::temp_directory run;
  const std::uint64_t dropped_before = lotus::dropped();
  REQUIRE(lotus::start(options_for(run)));
  record_once();
  steps::install(false);
  // Simulates a handler that interrupts another handler while the other handler stores a record.
  // The code sets `storing_nested`, the pointer that the inner handler would find, and then jumps
  // out of both handlers.
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

TEST_CASE("sums stay right after a handler leaves an aggregated call by siglongjmp") {
  const support::temp_directory run;
  const std::uint64_t dropped_before = lotus::dropped();
  REQUIRE(lotus::start(options_for(run)));
  record_once();
  for (int i = 0; i < 10; ++i) aggregate_once();
  steps::install(false);
  jumps = 0;
  ended = 11;
  const int stride = steps::stride(aggregate_storing, aggregate_once);
  for (volatile int k = 0;; k = k + stride) {
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

TEST_CASE("signal handlers may interrupt the storing of a record") {
  lotus_test::skip("only x86-64 is stepped through here");
}

#endif
