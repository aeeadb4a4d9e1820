// Locks that are safe with signals and fork.
#ifndef LOTUS_BASE_LOCK_HPP
#define LOTUS_BASE_LOCK_HPP

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Disables cancellation of this thread during its lifetime, and restores errno at its end. All
/// system calls of a scope run inside one: so a scope neither changes an errno that the program is
/// about to read nor becomes a cancellation point.
class uncancelled {
 public:
  uncancelled() noexcept : errno_{errno} {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
  }
  ~uncancelled() {
    pthread_setcancelstate(before_, nullptr);
    errno = errno_;
  }
  uncancelled(const uncancelled&) = delete;
  uncancelled& operator=(const uncancelled&) = delete;

 private:
  int errno_;
  int before_ = 0;
};

/// Also blocks all signals for this thread during its lifetime. All slow paths run inside one, so a
/// handler never needs a lock that its own thread holds. Two system calls.
class signals_blocked {
 public:
  signals_blocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  uncancelled quiet_;
  sigset_t before_;
};

/// A mutex that is trivially destructible, because it is in memory that is never destroyed.
class mutex {
 public:
  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }
  bool try_lock() noexcept { return pthread_mutex_trylock(&mutex_) == 0; }
  /// Returns false if another thread holds it for a whole second.
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

/// Lazy lookup: the first caller looks a value up for all callers. It cannot deadlock: two kinds of
/// callers get `meanwhile` at once. One is the thread that is looking up, if a library that it
/// loads runs code that asks again. The other is processes forked during the lookup, in which
/// nobody will finish it. Trivially destructible. Thread safety: all.
template <class T>
class found_once {
 public:
  /// Callers that come during the lookup wait, but for at most a second: the lookup may load a
  /// library, and the waiting thread may be in a static constructor, which holds the dynamic
  /// loader's lock.
  template <class Find>
  T get(Find&& find, T meanwhile) noexcept {
    if (found_.load(std::memory_order_acquire)) return value_;
    if (is_finder_or_forked() || !mutex_.lock_within_a_second()) return meanwhile;
    return find_locked(find);
  }

  /// Callers that come during the lookup do not wait.
  template <class Find>
  T get_at_once(Find&& find, T meanwhile) noexcept {
    if (found_.load(std::memory_order_acquire)) return value_;
    if (is_finder_or_forked() || !mutex_.try_lock()) return meanwhile;
    return find_locked(find);
  }

  /// Returns the value if it has been found, else `meanwhile`. Never waits.
  T known(T meanwhile) const noexcept {
    return found_.load(std::memory_order_acquire) ? value_ : meanwhile;
  }

 private:
  bool is_finder_or_forked() const noexcept {
    const pid_t finder = finder_.load(std::memory_order_acquire);
    if (finder == 0) return false;
    return finder != getpid() ||
           pthread_equal(finder_thread_.load(std::memory_order_relaxed), pthread_self()) != 0;
  }

  template <class Find>
  T find_locked(Find&& find) noexcept {
    if (!found_.load(std::memory_order_relaxed)) {
      finder_thread_.store(pthread_self(), std::memory_order_relaxed);
      finder_.store(getpid(), std::memory_order_release);
      value_ = find();
      found_.store(true, std::memory_order_release);
    }
    mutex_.unlock();
    return value_;
  }

  std::atomic<bool> found_{false};
  std::atomic<pid_t> finder_{0};  ///< the process that is looking up, or has finished
  std::atomic<pthread_t> finder_thread_{};
  mutex mutex_;
  T value_{};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_LOCK_HPP
