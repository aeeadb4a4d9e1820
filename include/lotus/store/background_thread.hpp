// Provides background threads, such as the one that drains rings (writes their records to the
// logs). If the drain thread cannot be started, rings are still drained when the recording ends.
#ifndef LOTUS_STORE_BACKGROUND_THREAD_HPP
#define LOTUS_STORE_BACKGROUND_THREAD_HPP

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "lotus/base/interruption.hpp"
#include "lotus/base/process_threads.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Determines the pauses between the rounds of the drain thread. All functions are thread-safe.
class drain_pace {
 public:
  void begin(std::uint32_t interval_ms) noexcept {
    max_ms_.store(interval_ms > 0 ? interval_ms : 1, std::memory_order_relaxed);
    early_ms_.store(5, std::memory_order_relaxed);
  }

  /// Returns the next pause in ms: first 5, 20 and 80, then the interval that the program has
  /// chosen. The first rounds follow each other quickly because each of them compares the records'
  /// clock with the wall clock, which makes the clock's measured rate more exact.
  /// @param more_to_do  whether leftovers remain to be recovered; then the pause is at most 100 ms.
  std::uint32_t next_ms(bool more_to_do) noexcept {
    const std::uint32_t early_ms = early_ms_.load(std::memory_order_relaxed);
    const std::uint32_t chosen_ms = max_ms_.load(std::memory_order_relaxed);
    const std::uint32_t max_ms =
        more_to_do && chosen_ms > early_until_ms ? early_until_ms : chosen_ms;
    if (early_ms < early_until_ms) early_ms_.store(early_ms * 4, std::memory_order_relaxed);
    return early_ms < early_until_ms && early_ms < max_ms ? early_ms : max_ms;
  }

 private:
  static constexpr std::uint32_t early_until_ms = 100;

  std::atomic<std::uint32_t> max_ms_{0};
  std::atomic<std::uint32_t> early_ms_{0};
};

/// A thread that calls a function at intervals. The thread is detached and never joined, because
/// the process may end at any moment. It ends when it has nothing to do, or when only threads of
/// the library are left: if main() leaves by pthread_exit(3), a process ends with its last thread.
/// All functions are thread-safe. Call wake() with signals blocked: the new thread inherits the
/// mask, and must not run the program's signal handlers.
class background_thread {
 public:
  /// @param name  the thread's name, at most 15 characters; must stay valid.
  /// @param round  function that the thread calls with `context`. Returns the pause until the next
  /// call in ns; 0: until wake() is called.
  background_thread(const char* name, std::uint64_t (*round)(void*) noexcept,
                    void* context) noexcept
      : name_{name}, round_{round}, context_{context} {}

  /// Starts the thread, or ends its pause if it is running. Does nothing if the thread cannot be
  /// started.
  void wake() noexcept {
    wakes_.fetch_add(1);
    syscall(SYS_futex, &wakes_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    if (runs_.load() || runs_.exchange(true)) return;
    // The program's default may be very small, or larger than the system allows. The exit handlers
    // of the program may run on this thread, if it is the last one.
    if (!start(stack_bytes) && !start(0)) runs_.store(false);
  }

  /// Whether the thread is running. A forked child has no such thread.
  bool runs() const noexcept { return runs_.load(std::memory_order_relaxed); }

  /// For a forked child, which does not have the parent's thread: makes wake() start a new one.
  void forget() noexcept {
#ifndef LOTUS_DETAIL_THREAD_SANITIZER
    // ThreadSanitizer kills a child that starts a thread if the parent had several.
    runs_.store(false, std::memory_order_relaxed);
#endif
  }

 private:
  static constexpr std::size_t stack_bytes = std::size_t{512} << 10;
  static constexpr std::uint64_t max_pause_ns = 250'000'000;

  /// @param stack  size of the thread's stack in bytes; 0: the program's default.
  LOTUS_DETAIL_COLD bool start(std::size_t stack) noexcept {
    if (!may_allocate()) return false;
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    if (stack != 0) pthread_attr_setstacksize(&how, stack);
    // Do not inherit the priority of a real-time thread: this thread would delay other threads.
    const int policy = sched_getscheduler(0);
    if (stack != 0 && (policy == SCHED_FIFO || policy == SCHED_RR)) {
      pthread_attr_setinheritsched(&how, PTHREAD_EXPLICIT_SCHED);  // SCHED_OTHER
    }
    pthread_t thread{};
    const bool started = pthread_create(&thread, &how, run, this) == 0;
    pthread_attr_destroy(&how);
    return started;
  }

  /// Returns whether malloc works on this thread. If a filter of system calls forbids malloc's
  /// first allocation on a thread with another error than ENOMEM, glibc's pthread_create(3) calls
  /// abort(3).
  static bool may_allocate() noexcept {
    void* volatile memory = std::malloc(64);
    std::free(memory);
    return memory != nullptr;
  }

  LOTUS_DETAIL_COLD static void* run(void* self) noexcept {
    auto& thread = *static_cast<background_thread*>(self);
    pthread_setname_np(pthread_self(), thread.name_);
    for (;;) {
      const std::uint32_t seen = thread.wakes_.load();
      const std::uint64_t pause_ns = thread.round_(thread.context_);
      if ((pause_ns == 0 || !thread.pause(pause_ns, seen)) && thread.may_end(seen)) break;
    }
    if (only_own_threads_are_left()) {
      // This thread now ends the process, and so may run exit handlers.
      sigset_t none;
      sigemptyset(&none);
      pthread_sigmask(SIG_SETMASK, &none, nullptr);
    }
    return nullptr;
  }

  /// Waits until wake() is called or the time is over. Returns false if the thread must end.
  bool pause(std::uint64_t ns, std::uint32_t seen) noexcept {
    while (wakes_.load() == seen) {
      const std::uint64_t part_ns = ns < max_pause_ns ? ns : max_pause_ns;
      const timespec part{0, static_cast<long>(part_ns)};
      syscall(SYS_futex, &wakes_, FUTEX_WAIT_PRIVATE, seen, &part, nullptr, 0);
      if (only_own_threads_are_left()) return false;
      if ((ns -= part_ns) == 0) break;
    }
    return true;
  }

  /// Declares the thread ended, unless wake() was called after `seen` was read and has started no
  /// other thread.
  bool may_end(std::uint32_t seen) noexcept {
    runs_.store(false);
    return wakes_.load() == seen || runs_.exchange(true);
  }

  const char* name_;
  std::uint64_t (*round_)(void*) noexcept;
  void* context_;
  std::atomic<std::uint32_t> wakes_{0};
  std::atomic<bool> runs_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_BACKGROUND_THREAD_HPP
