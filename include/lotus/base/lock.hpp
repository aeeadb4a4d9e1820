// Provides locks, and objects that block signals or cancellation while they exist. Used together,
// they keep signal handlers and forked children from waiting forever for a lock.
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

/// Disables cancellation of this thread (pthread_cancel(3)) while the object exists, and restores
/// errno at its end. Every system call of a scope is made while such an object exists. So a scope
/// does not change an errno that the program is about to read, and is no cancellation point.
class uncanceled {
 public:
  uncanceled() noexcept : errno_{errno} {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
  }
  ~uncanceled() {
    pthread_setcancelstate(before_, nullptr);
    errno = errno_;
  }
  uncanceled(const uncanceled&) = delete;
  uncanceled& operator=(const uncanceled&) = delete;

 private:
  int errno_;
  int before_ = 0;
};

/// Blocks all signals for this thread while the object exists. Like `uncanceled`, also disables
/// cancellation of the thread, and restores errno at the end. Every slow path uses such an object,
/// so a signal handler never needs a lock that its own thread holds. Takes two system calls.
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
  uncanceled quiet_;
  sigset_t before_;
};

/// A mutex with a trivial destructor, because the memory that contains it is never destroyed.
class mutex {
 public:
  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }
  bool try_lock() noexcept { return pthread_mutex_trylock(&mutex_) == 0; }
  /// Like lock(), but returns false if another thread holds the mutex for a whole second.
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

/// Lazy lookup: the first caller looks up a value for all callers. A caller that could wait forever
/// gets the value `meanwhile` instead, so there is no deadlock. There are two such cases. The
/// lookup may load a library whose code requests the value on the same thread. Or the process may
/// fork during the lookup; then the child has no thread that completes the lookup. Trivially
/// destructible. Thread safety: any thread may call all functions.
template <class T>
class lazy_lookup {
 public:
  /// Returns the value. A caller waits for a lookup on another thread, but for at most a second.
  /// Without this limit there could be a deadlock: the lookup may load a library, and the waiting
  /// thread may hold the dynamic loader's lock because it runs a static constructor.
  template <class Find>
  T get(Find&& find, T meanwhile) noexcept {
    if (found_.load(std::memory_order_acquire)) return value_;
    if (is_finder_or_forked() || !mutex_.lock_within_a_second()) return meanwhile;
    return find_locked(find);
  }

  /// Like get(), but does not wait if another thread is looking up the value: returns `meanwhile`
  /// instead.
  template <class Find>
  T get_at_once(Find&& find, T meanwhile) noexcept {
    if (found_.load(std::memory_order_acquire)) return value_;
    if (is_finder_or_forked() || !mutex_.try_lock()) return meanwhile;
    return find_locked(find);
  }

  /// Returns the value if it has been found, otherwise `meanwhile`. Never waits.
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
  /// Id of the process that is looking up the value or has found it; 0 before the first lookup.
  std::atomic<pid_t> finder_{0};
  std::atomic<pthread_t> finder_thread_{};
  mutex mutex_;
  T value_{};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_LOCK_HPP
