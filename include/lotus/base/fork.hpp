// Queries to the dynamic loader, and handlers that keep a fork from happening during one.
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

/// Operations that must not be in progress on any thread during a fork, because in the child they
/// would never finish. One for each shared object; trivially destructible.
struct at_forks {
  mutex loader;  ///< held from before a fork until after it

  /// Called with `loader` held and signals blocked; may be null. All are set together, under
  /// `loader`.
  void (*before)() noexcept = nullptr;
  void (*after_in_parent)() noexcept = nullptr;
  void (*after_in_child)() noexcept = nullptr;
  /// Returns false in a child that was created without these handlers; may be null. In such a
  /// child, and in its own children, locks may be held forever: nothing is done when it forks.
  bool (*in_own_process)() noexcept = nullptr;

  std::atomic<pid_t> registering{0};  ///< the process that is registering the handlers, or
                                      ///< `registered`
  unsigned times_registered = 0;      ///< as counted during the current fork
  bool before_was_called = false;     ///< a fork handler of the program may create the session
                                      ///< after our handler ran
  sigset_t signals_before{};          ///< signal mask of the thread that forks

  static constexpr pid_t registered = -1;
};
LOTUS_DETAIL_PER_MODULE inline at_forks this_module_at_forks;

/// Whether this thread is within a fork, or has just been forked, and so holds all locks: scopes in
/// the program's own fork handlers must not wait for them.
LOTUS_DETAIL_PER_MODULE inline thread_local bool this_thread_forks = false;

LOTUS_DETAIL_PER_MODULE inline void prepare_fork() noexcept {
  at_forks& forks = this_module_at_forks;
  if (this_thread_forks) {
    ++forks.times_registered;
    return;
  }
  if (forks.in_own_process != nullptr && !forks.in_own_process()) return;
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

/// Returns when the handlers are registered. If a process forks while another of its threads is
/// registering them, the child registers them again: they may then run twice.
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

/// Calls dl_iterate_phdr(3), but never while another thread forks: in the child, glibc leaves the
/// state of its lock to chance. `each` runs under that lock, which all objects of the process
/// share.
LOTUS_DETAIL_PER_MODULE inline void iterate_objects(int (*each)(dl_phdr_info*, std::size_t, void*),
                                                    void* result) noexcept {
  const signals_blocked quiet;
  // Registers when the object is loaded, which in most programs is before there are threads: a fork
  // that is in progress on another thread may not see handlers that are registered now.
  LOTUS_DETAIL_CALL_AT_LOAD(register_at_forks);
  register_at_forks();  // for scopes in static constructors of other objects, which run earlier
  const bool held = this_thread_forks;
  if (!held) this_module_at_forks.loader.lock();
  dl_iterate_phdr(each, result);
  if (!held) this_module_at_forks.loader.unlock();
}

/// Keeps the shared object that contains `code` in memory, even after dlclose: the drain thread,
/// fork handlers and other objects continue to call it.
inline void pin_module_of(const void* code) noexcept {
  Dl_info info{};
  void* extra = nullptr;
  if (dladdr1(code, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) return;
  const char* path = static_cast<const link_map*>(extra)->l_name;
  if (path == nullptr || *path == '\0') return;  // the program itself
  dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_FORK_HPP
