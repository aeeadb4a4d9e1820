// Locks that survive signals and fork, and memory that does not come from malloc.
#ifndef LOTUS_LOCK_HPP
#define LOTUS_LOCK_HPP

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Blocks every signal of this thread for its lifetime, and cancellation; errno is at its end what
/// it was. All slow paths run inside one, so a handler never meets a lock that its own thread
/// holds, no lock is left held by a thread that was cancelled, and a scope's end changes no errno
/// that somebody is about to look at. Two system calls.
class signals_blocked {
 public:
  signals_blocked() noexcept : errno_{errno} {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before_);
  }
  ~signals_blocked() {
    pthread_setcancelstate(cancel_before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = errno_;
  }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  int errno_;
  int cancel_before_ = 0;
  sigset_t before_;
};

/// A mutex that is trivially destructible, as it lives in memory that is never torn down.
class mutex {
 public:
  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }
  /// False where another thread kept it for a second.
  bool lock_within_a_second() noexcept {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    ++until.tv_sec;
    return pthread_mutex_timedlock(&mutex_, &until) == 0;
  }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

class locked {
 public:
  explicit locked(mutex& m) noexcept : mutex_{m} { mutex_.lock(); }
  ~locked() { mutex_.unlock(); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;

 private:
  mutex& mutex_;
};

/// What the first caller finds, for all callers. Those who come while it is being found wait for a
/// second and then go on with `meanwhile`: where finding loads a library, the thread that waits may
/// be a static constructor, which runs under the dynamic loader's lock, and both would wait for
/// ever. So do, at once, processes that were forked meanwhile: in them nobody goes on finding.
/// Trivially destructible. Thread safety: all.
template <class T>
class found_once {
 public:
  template <class Find>
  T get(Find&& find, T meanwhile) noexcept {
    if (found_.load(std::memory_order_acquire)) return value_;
    const pid_t finder = finder_.load(std::memory_order_relaxed);
    if (finder != 0 && finder != getpid()) return meanwhile;
    if (!mutex_.lock_within_a_second()) return meanwhile;
    if (!found_.load(std::memory_order_relaxed)) {
      finder_.store(getpid(), std::memory_order_relaxed);
      value_ = find();
      found_.store(true, std::memory_order_release);
    }
    mutex_.unlock();
    return value_;
  }

  /// What has been found by now, or `meanwhile`. Never waits.
  T known(T meanwhile) const noexcept {
    return found_.load(std::memory_order_acquire) ? value_ : meanwhile;
  }

 private:
  std::atomic<bool> found_{false};
  std::atomic<pid_t> finder_{0};  ///< the process that is finding, or has found
  mutex mutex_;
  T value_{};
};

/// Fresh zeroed private memory straight from the kernel, so that a signal handler which interrupted
/// malloc may still record. Null when there is none.
inline void* map_memory(std::size_t bytes) noexcept {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_LOCK_HPP
