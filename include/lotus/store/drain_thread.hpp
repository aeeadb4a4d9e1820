// The thread that drains in the background. It is an optimization: nothing depends on it.
#ifndef LOTUS_STORE_DRAIN_THREAD_HPP
#define LOTUS_STORE_DRAIN_THREAD_HPP

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Determines the pauses between the rounds of a recording. Thread safety: all.
class drain_pace {
 public:
  void begin(std::uint32_t interval_ms) noexcept {
    most_ms_.store(interval_ms > 0 ? interval_ms : 1, std::memory_order_relaxed);
    early_ms_.store(5, std::memory_order_relaxed);
  }

  /// Returns 5, 20 and 80 ms first, because early ties improve the clock's rate; then the program's
  /// interval.
  /// @param more_to_do  there is work besides draining: limits the pause to 100 ms.
  std::uint32_t next_ms(bool more_to_do) noexcept {
    const std::uint32_t early_ms = early_ms_.load(std::memory_order_relaxed);
    const std::uint32_t chosen_ms = most_ms_.load(std::memory_order_relaxed);
    const std::uint32_t most_ms =
        more_to_do && chosen_ms > early_until_ms ? early_until_ms : chosen_ms;
    if (early_ms < early_until_ms) early_ms_.store(early_ms * 4, std::memory_order_relaxed);
    return early_ms < early_until_ms && early_ms < most_ms ? early_ms : most_ms;
  }

 private:
  static constexpr std::uint32_t early_until_ms = 100;

  std::atomic<std::uint32_t> most_ms_{0};
  std::atomic<std::uint32_t> early_ms_{0};
};

/// Calls a function at intervals. Detached and never joined: the process may end at any moment.
/// Thread safety: all functions; the caller has signals blocked, which the thread inherits.
class drain_thread {
 public:
  /// @param round  called with `context`; returns the pause until the next round in ms, or 0 to
  /// sleep until wake() is called.
  drain_thread(std::uint32_t (*round)(void*) noexcept, void* context) noexcept
      : round_{round}, context_{context} {}

  /// Starts the thread, or the next round if it runs already. Does nothing if no thread can be
  /// created.
  void wake() noexcept {
    wakes_.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &wakes_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    if (runs_.load(std::memory_order_relaxed) || runs_.exchange(true)) return;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    if (pthread_create(&thread, &detached, run, this) != 0) runs_.store(false);
    pthread_attr_destroy(&detached);
  }

  /// Whether the thread runs; false in a child that was just forked.
  bool runs() const noexcept { return runs_.load(std::memory_order_relaxed); }

  /// In a forked child, which has no such thread.
  void forget() noexcept { runs_.store(false, std::memory_order_relaxed); }

 private:
  LOTUS_DETAIL_COLD static void* run(void* self) noexcept {
    pthread_setname_np(pthread_self(), "lotus-drain");
    auto& thread = *static_cast<drain_thread*>(self);
    for (;;) {
      const std::uint32_t seen = thread.wakes_.load(std::memory_order_acquire);
      const std::uint32_t pause_ms = thread.round_(thread.context_);
      const timespec pause{pause_ms / 1000, static_cast<long>(pause_ms % 1000) * 1'000'000};
      syscall(SYS_futex, &thread.wakes_, FUTEX_WAIT_PRIVATE, seen, pause_ms == 0 ? nullptr : &pause,
              nullptr, 0);
    }
  }

  std::uint32_t (*round_)(void*) noexcept;
  void* context_;
  std::atomic<std::uint32_t> wakes_{0};
  std::atomic<bool> runs_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_DRAIN_THREAD_HPP
