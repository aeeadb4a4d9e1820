// Calls functions of a profiler vendor's library, which may hang, with a time limit.
#ifndef LOTUS_COLLECTORS_DEADLINE_CALLER_HPP
#define LOTUS_COLLECTORS_DEADLINE_CALLER_HPP

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "lotus/base/clock.hpp"
#include "lotus/collectors/backend.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A thread that calls the functions of a vendor's library, so that the caller need not wait for a
/// function that hangs. Only one thread at a time may use it. A forked child starts a new thread.
class deadline_caller {
 public:
  static deadline_caller& instance() noexcept {
    static deadline_caller caller;
    return caller;
  }

  /// Calls `what` on this object's own thread, and waits at most collector_timeout_ms() for it.
  /// Returns false if `what` has not returned by then; do not use this object again after that.
  bool call(void (*what)()) noexcept {
    if (process_ != getpid() && !start()) {
      what();
      return true;
    }
    const std::int64_t until_ns =
        clock_ns(CLOCK_MONOTONIC) + collector_timeout_ms() * std::int64_t{1'000'000};
    const timespec until{static_cast<time_t>(until_ns / 1'000'000'000),
                         static_cast<long>(until_ns % 1'000'000'000)};
    pthread_mutex_lock(&guard_);
    what_ = what;
    pthread_cond_signal(&asked_);
    int error = 0;
    while (what_ != nullptr && error == 0) {
      error = pthread_cond_timedwait(&done_, &guard_, &until);
    }
    const bool returned = what_ == nullptr;
    pthread_mutex_unlock(&guard_);
    return returned;
  }

 private:
  bool start() noexcept {
    pthread_mutex_init(&guard_, nullptr);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&asked_, nullptr);
    pthread_cond_init(&done_, &monotonic);
    pthread_condattr_destroy(&monotonic);
    what_ = nullptr;
    // The new thread inherits a mask that blocks all signals, because signals for the program must
    // be handled by the program's own threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const bool started = pthread_create(&thread, nullptr, serve, this) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!started) return false;
    pthread_detach(thread);
    process_ = getpid();
    return true;
  }

  static void* serve(void* self) noexcept {
    auto& caller = *static_cast<deadline_caller*>(self);
    pthread_mutex_lock(&caller.guard_);
    for (;;) {
      while (caller.what_ == nullptr) pthread_cond_wait(&caller.asked_, &caller.guard_);
      void (*what)() = caller.what_;
      pthread_mutex_unlock(&caller.guard_);
      what();
      pthread_mutex_lock(&caller.guard_);
      caller.what_ = nullptr;
      pthread_cond_signal(&caller.done_);
    }
  }

  pid_t process_ = 0;
  pthread_mutex_t guard_{};
  pthread_cond_t asked_{};
  pthread_cond_t done_{};
  void (*what_)() = nullptr;
};

/// Calls `what`, a function of a vendor's library. Returns false if it does not return within
/// collector_timeout_ms(); make no further calls then.
inline bool call_with_deadline(void (*what)()) noexcept {
  return deadline_caller::instance().call(what);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_DEADLINE_CALLER_HPP
