// Locks that survive signals and fork, and memory that does not come from malloc.
#ifndef LOTUS_LOCK_HPP
#define LOTUS_LOCK_HPP

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

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

/// Fresh zeroed private memory straight from the kernel, so that a signal handler which interrupted
/// malloc may still record. Null when there is none.
inline void* map_memory(std::size_t bytes) noexcept {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_LOCK_HPP
