// What the dynamic loader is asked, and how a fork is kept away from that.
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

/// What must not be underway on any thread while one forks, as the child would find it so for ever.
/// One for each shared object; trivially destructible.
struct at_forks {
  mutex loader;  ///< held from before a fork until after it

  /// Called with `loader` held and signals blocked; may be null. Set, together, under it.
  void (*before)() noexcept = nullptr;
  void (*after_in_parent)() noexcept = nullptr;
  void (*after_in_child)() noexcept = nullptr;
  /// False in a child that was made without these handlers; may be null. In such a child locks may
  /// be held for ever, and so may they be in its own children: nothing is done at their forks.
  bool (*in_own_process)() noexcept = nullptr;

  std::atomic<pid_t> registering{0};  ///< the process that is at it, or `registered`
  unsigned times_registered = 0;      ///< as seen by the fork that is underway
  bool before_was_called = false;     ///< a handler of the program may make the session meanwhile
  sigset_t signals_before{};          ///< of the thread that forks

  static constexpr pid_t registered = -1;
};
LOTUS_DETAIL_PER_MODULE inline at_forks this_module_at_forks;

/// Whether this thread is within a fork, or has just been forked, and so has all locks: scopes in
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

/// Returns when the handlers are in place. A child that was forked while its parent's thread was at
/// it does it anew: then they may be there twice.
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

/// dl_iterate_phdr(3), but never while another thread forks: glibc leaves the lock that it takes to
/// chance in a child. `each` runs under that lock, which all objects of the process share.
LOTUS_DETAIL_PER_MODULE inline void iterate_objects(int (*each)(dl_phdr_info*, std::size_t, void*),
                                                    void* result) noexcept {
  const signals_blocked quiet;
  // When the object is loaded, and so before there are threads in most programs: a fork that is
  // underway on another thread may not see handlers that come now.
  LOTUS_DETAIL_CALL_AT_LOAD(register_at_forks);
  register_at_forks();  // scopes in static constructors of other objects run earlier
  const bool held = this_thread_forks;
  if (!held) this_module_at_forks.loader.lock();
  dl_iterate_phdr(each, result);
  if (!held) this_module_at_forks.loader.unlock();
}

/// Keeps the shared object that holds `code` in memory, also after dlclose: drain thread, fork
/// handlers and other objects go on calling it.
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
