// Interrupts each instruction of a scope, an aggregated scope, a batch, a wait and a stage, and
// many moments of a full ring, a drain and a snapshot, by a signal handler that records too. No
// record may be missing without being counted. This file is compiled with and without optimization.

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "aggregates.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

#if defined(__x86_64__)

/// Replaces the function of the C library, so that the library never blocks SIGTRAP: a step of the
/// processor while SIGTRAP is blocked would kill the process.
extern "C" int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  sigset_t without{};
  if (set != nullptr) {
    without = *set;
    if (how != SIG_UNBLOCK) sigdelset(&without, SIGTRAP);
  }
  constexpr std::size_t mask_bytes = 8;
  return syscall(SYS_rt_sigprocmask, how, set == nullptr ? nullptr : &without, before,
                 mask_bytes) == 0
             ? 0
             : errno;
}

namespace {

std::uint64_t number = 0;
volatile std::uint64_t handled = 0;

__attribute__((noinline)) void run_scope() {
  LOTUS_SCOPE("Scope");
}
__attribute__((noinline)) void run_dynamic() {
  LOTUS_SCOPE_DYNAMIC(std::string_view{"Dynamic"});
}
__attribute__((noinline)) void run_aggregated() {
  LOTUS_SCOPE_AGGREGATED("Sum");
}
__attribute__((noinline)) void run_lengths() {
  // Durations of different lengths need memory for new buckets.
  LOTUS_SCOPE_AGGREGATED("Longer");
  volatile std::uint64_t turns = std::uint64_t{1} << (++number % 9);
  while (turns != 0) turns = turns - 1;
}
/// Adds the calls that handlers have left because they interrupted the adding of a call.
__attribute__((noinline)) void run_left() {
  lotus::detail::aggregate_slow({}, true);
}
void leave_calls() {
  auto& of = lotus::detail::aggregates_of(*lotus::detail::this_ring);
  const auto name = lotus::detail::operation_tag("Left").value();
  for (of.interrupting = 0; of.interrupting < 3; ++of.interrupting) {
    const auto key = lotus::detail::aggregate_key(static_cast<std::uint32_t>(name), 0);
    of.interrupting_calls[of.interrupting] = {key, 100, 100};
  }
}
__attribute__((noinline)) void run_batch() {
  lotus::batch_preprocessed b{++number};
}
__attribute__((noinline)) void run_consumed() {
  lotus::batch_consumed(++number);
}
__attribute__((noinline)) void run_wait() {
  lotus::batch_wait w{++number};
}
__attribute__((noinline)) void run_late_wait() {
  lotus::batch_wait w;
  w.consumed(++number);
}
__attribute__((noinline)) void run_stage() {
  LOTUS_STAGE("Stage", ++number);
}
__attribute__((noinline)) void run_full() {
  for (int i = 0; i < 70; ++i) LOTUS_SCOPE("Full");
}
__attribute__((noinline)) void run_drain() {
  run_scope();
  lotus::flush();
}
__attribute__((noinline)) void run_snapshot() {
  run_scope();
  lotus::snapshot("attack");
}

struct operation {
  const char* what;
  void (*run)();
  const char* recorded;  ///< beginning of the name under which the operation is recorded
  std::uint64_t records = 1;
  bool aggregated = false;
  bool is_long = false;
};

const operation operations[] = {
    {"scope", run_scope, "SScope"},
    {"dynamic scope", run_dynamic, "SDynamic"},
    {"aggregated scope", run_aggregated, "SSum", 1, true},
    {"aggregated scopes of many lengths", run_lengths, "SLonger", 1, true},
    {"calls left by handlers", run_left, "SLeft", 3, true},
    {"batch", run_batch, "SBatchPreprocessed_"},
    {"consumed batch", run_consumed, "SBatchConsumed_"},
    {"wait", run_wait, "SBatchWait_"},
    {"late wait", run_late_wait, "SBatchWait_"},
    {"stage", run_stage, "SStage"},
    {"full ring", run_full, "SFull", 70, false, true},
    {"drain", run_drain, "SScope", 1, false, true},
    {"snapshot", run_snapshot, "SScope", 1, false, true}};

void handle() {
  { LOTUS_SCOPE("Handler"); }
  { LOTUS_SCOPE_AGGREGATED("HandlerSum"); }
  handled = handled + 1;
}

/// Steps through this thread's code, and interrupts it where signals are not blocked. All members
/// are static, because a signal handler uses this class.
struct steps {
  static inline volatile bool stepping = false;
  static inline volatile unsigned at = 0;        ///< number of instructions so far
  static inline volatile unsigned first = 0;     ///< the first instruction to interrupt; 0: none
  static inline volatile unsigned distance = 0;  ///< that of further ones; 0: there are none
  static inline volatile unsigned last = 0;      ///< the last instruction that is stepped through

  static void trap(int, siginfo_t*, void* context) {
    constexpr greg_t trap_flag = 0x100;
    auto& at_signal = *static_cast<ucontext_t*>(context);
    greg_t& flags = at_signal.uc_mcontext.gregs[REG_EFL];
    flags = stepping ? flags | trap_flag : flags & ~trap_flag;
    if (!stepping || sigismember(&at_signal.uc_sigmask, SIGUSR1) == 1) return;
    const unsigned now = at = at + 1;
    const bool again = distance != 0 && now > first && (now - first) % distance == 0;
    if (now == first || again) handle();
    // Steps are slow, so the rest of the operation runs without them.
    if (now == last) {
      stepping = false;
      flags &= ~trap_flag;
    }
  }

  /// Executes the function, and returns the number of its instructions, as far as it was stepped.
  static unsigned run(void (*what)(), unsigned first_at, unsigned then, unsigned last_at) {
    first = first_at;
    distance = then;
    last = last_at;
    at = 0;
    stepping = true;
    raise(SIGTRAP);
    what();
    stepping = false;
    return at;
  }
};

class recording {
 public:
  recording() {
    lotus::options o;
    o.log_file = run_.prefix();
    o.ring_records = 64;
    o.cpu_time = false;
    o.wait_samples_per_s = 0;
    o.drain_interval_ms = 1'000'000;
    o.on_message = [](const char*) {};
    lotus::start(o);
    dropped_ = lotus::dropped();
    handled = 0;
  }

  unsigned execute(const operation& what, unsigned first, unsigned distance, unsigned last) {
    if (what.run == run_left) leave_calls();
    const unsigned instructions = steps::run(what.run, first, distance, last);
    ++done_;
    lotus::flush();
    return instructions;
  }

  /// Lets another thread send signals while the operation is executed again and again, until enough
  /// signals arrived: on a busy machine, the other thread may begin late.
  void execute_among_signals(const operation& what, int times) {
    std::atomic<bool> ended{false};
    const pthread_t self = pthread_self();
    std::thread sender{[&] {
      for (unsigned i = 0; !ended; ++i) {
        usleep(20 + i * 37 % 400);
        pthread_kill(self, SIGUSR1);
      }
    }};
    for (int i = 0; i < times || (handled <= 50 && i < 1'000'000); ++i) {
      what.run();
      ++done_;
    }
    ended = true;
    sender.join();
  }

  /// Returns what is wrong; empty if each record is in the logs or counted as dropped.
  std::string end(const operation& what) {
    const std::uint64_t dropped = lotus::dropped() - dropped_;
    lotus::stop();
    const auto lines = support::read_logs(run_.path());
    const auto times = [&](const char* name) {
      std::uint64_t count = 0;
      for (const auto& line : lines) count += line.name.rfind(name, 0) == 0 ? 1 : 0;
      return count;
    };
    const std::uint64_t expected = done_ * what.records;
    const std::uint64_t recorded = what.aggregated
                                       ? support::aggregate_of(run_.path(), what.recorded).count
                                       : times(what.recorded);
    const std::uint64_t handlers = times("SHandler");
    const std::uint64_t sums = support::aggregate_of(run_.path(), "SHandlerSum").count;
    const bool none_twice = recorded <= expected && handlers <= handled && sums <= handled;
    const std::uint64_t missing = expected - recorded + handled - handlers + handled - sums;
    if (none_twice && missing == dropped && handled > 10) return "";
    return std::to_string(recorded) + " of " + std::to_string(expected) + " recorded; " +
           std::to_string(handlers) + " and " + std::to_string(sums) + " of " +
           std::to_string(handled) + " by handlers; " + std::to_string(dropped) + " dropped";
  }

 private:
  support::temp_directory run_{support::in_memory()};
  std::uint64_t dropped_ = 0;
  std::uint64_t done_ = 0;
};

std::string result_of(const operation& what) {
  recording run;
  handle();
  if (what.run == run_drain || what.run == run_snapshot) {
    run.execute_among_signals(what, what.run == run_drain ? 2000 : 50);
    return run.end(what);
  }
  constexpr unsigned long_distance = 997;
  const unsigned max = what.is_long ? 12'000 : 1'500;
  const unsigned all = run.execute(what, 0, 0, max);
  // Several instructions of an execution are interrupted, and each in one of the executions, or
  // with LOTUS_TEST_BRIEFLY a fourth of them.
  const unsigned distance = what.is_long ? long_distance : what.run == run_left ? all : 11;
  #ifdef LOTUS_TEST_BRIEFLY
  constexpr unsigned step = 4;
  #else
  constexpr unsigned step = 1;
  #endif
  for (unsigned first = 1; first <= (what.is_long ? 4 : distance); first += step) {
    run.execute(what, first, distance, all);
  }
  return run.end(what);
}

}  // namespace

int main() {
  struct sigaction action {};
  action.sa_sigaction = steps::trap;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, nullptr);
  action.sa_flags = 0;
  action.sa_handler = [](int) { handle(); };
  sigaction(SIGUSR1, &action, nullptr);
  int failed = 0;
  for (const operation& what : operations) {
    const std::string result = result_of(what);
    if (!result.empty()) ++failed;
    std::printf("%s: %s\n", what.what, result.empty() ? "nothing is missing" : result.c_str());
  }
  return failed == 0 ? 0 : 1;
}

#else

int main() {
  std::printf("skipped: only x86-64 is stepped through here\n");
  return 77;
}

#endif
