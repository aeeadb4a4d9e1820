// Registers fork handlers, and keeps the process from forking while a thread lists its shared
// objects with the help of the dynamic loader.
#ifndef LOTUS_BASE_FORK_HPP
#define LOTUS_BASE_FORK_HPP

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// State of the fork handlers of one shared object. If another thread held a lock during a fork,
/// that lock would stay locked in the child forever. So the fork handlers take all locks before a
/// fork and release them after it. Trivially destructible.
struct at_forks {
  /// A lock that is held during every query to the dynamic loader, and from before a fork until
  /// after it.
  mutex loader;

  /// Functions that the fork handlers call before and after a fork, while the lock `loader` is held
  /// and signals are blocked; null until there is a session. All three are set together, while the
  /// lock `loader` is held.
  void (*before)() noexcept = nullptr;
  void (*after_in_parent)() noexcept = nullptr;
  void (*after_in_child)() noexcept = nullptr;
  /// Returns false in a child that was created without fork handlers, for example by clone(2). In
  /// such a child and its own children, locks may stay locked forever, so the handlers do nothing.
  /// Null until there is a session.
  std::atomic<bool (*)() noexcept> in_own_process{nullptr};

  /// Id of the process that is registering the fork handlers; 0 before the registration, and the
  /// constant `registered` after it.
  std::atomic<pid_t> registering{0};
  /// How many times the fork handlers are registered (see register_at_forks()). Each fork
  /// determines the number by counting how often they are called.
  unsigned times_registered = 0;
  /// Whether the fork in progress has called the function `before`. If it has not, no session
  /// existed at that moment, but the program's own fork handlers may create one before the fork
  /// ends.
  bool before_was_called = false;
  sigset_t signals_before{};  ///< signal mask that the forking thread had

  static constexpr pid_t registered = -1;
};
LOTUS_DETAIL_PER_MODULE inline at_forks this_module_at_forks;

/// Whether this thread is in fork(2) and therefore holds all locks of the library. Scopes in the
/// program's own fork handlers must then not wait for these locks.
LOTUS_DETAIL_PER_MODULE inline thread_local bool this_thread_forks = false;

LOTUS_DETAIL_PER_MODULE inline void prepare_fork() noexcept {
  at_forks& forks = this_module_at_forks;
  if (this_thread_forks) {
    ++forks.times_registered;
    return;
  }
  const auto in_own_process = forks.in_own_process.load(std::memory_order_acquire);
  if (in_own_process != nullptr && !in_own_process()) return;
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  forks.loader.lock();
  forks.signals_before = before;
  this_thread_forks = true;
  forks.times_registered = 1;
  forks.before_was_called = forks.before != nullptr;
  if (forks.before_was_called) forks.before();
}

LOTUS_DETAIL_PER_MODULE inline void resume_after_fork(void (*whole)() noexcept) noexcept {
  at_forks& forks = this_module_at_forks;
  if (!this_thread_forks || --forks.times_registered > 0) return;
  if (whole != nullptr) {
    if (!forks.before_was_called) forks.before();
    whole();
  }
  const sigset_t before = forks.signals_before;
  this_thread_forks = false;
  forks.loader.unlock();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Registers the fork handlers of this shared object, and returns after they are registered. If the
/// process forks while another thread registers them, the child registers them again, so they may
/// run twice.
LOTUS_DETAIL_PER_MODULE inline void register_at_forks() noexcept {
  at_forks& forks = this_module_at_forks;
  const pid_t process = getpid();
  for (pid_t seen = 0; seen != at_forks::registered;) {
    seen = forks.registering.load(std::memory_order_acquire);
    if (seen == process) sched_yield();
    if (seen == process || seen == at_forks::registered) continue;
    if (!forks.registering.compare_exchange_strong(seen, process)) continue;
    pthread_atfork(
        prepare_fork, [] { resume_after_fork(this_module_at_forks.after_in_parent); },
        [] { resume_after_fork(this_module_at_forks.after_in_child); });
    forks.registering.store(at_forks::registered, std::memory_order_release);
  }
}

/// Calls dl_iterate_phdr(3), but never while another thread forks: glibc's lock would otherwise be
/// in an undefined state in the child. `each` runs while that lock is held.
LOTUS_DETAIL_PER_MODULE inline void iterate_objects(int (*each)(dl_phdr_info*, std::size_t, void*),
                                                    void* result) noexcept {
  const signals_blocked quiet;
  // Registers the handlers when the shared object is loaded, because most programs have only one
  // thread then. If they were registered later, a fork in progress on another thread would not call
  // them.
  LOTUS_DETAIL_CALL_AT_LOAD(register_at_forks);
  // This call is needed for scopes in static constructors that run before the registration above.
  register_at_forks();
  const bool held = this_thread_forks;
  if (!held) this_module_at_forks.loader.lock();
  dl_iterate_phdr(each, result);
  if (!held) this_module_at_forks.loader.unlock();
}

/// Keeps the shared object that contains `code` in memory even after dlclose, because the drain
/// thread, the fork handlers and other shared objects continue to call its code.
inline void pin_module_of(const void* code) noexcept {
  Dl_info info{};
#if defined(RTLD_DL_LINKMAP)
  void* extra = nullptr;
  if (dladdr1(code, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) return;
  const char* path = static_cast<const link_map*>(extra)->l_name;
#else
  // musl has only dladdr. Its path is also that of the program itself, which is already loaded, so
  // dlopen changes nothing then.
  if (dladdr(code, &info) == 0) return;
  const char* path = info.dli_fname;
#endif
  // Without a path, `code` is part of the program itself, which is never unloaded.
  if (path == nullptr || *path == '\0') return;
  dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_FORK_HPP
