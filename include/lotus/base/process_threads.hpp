// Lists the threads of this process, and determines which of them the library has started.
#ifndef LOTUS_BASE_PROCESS_THREADS_HPP
#define LOTUS_BASE_PROCESS_THREADS_HPP

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "lotus/base/descriptor.hpp"
#include "lotus/base/directory_entries.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Calls `each(pid_t)` for every thread of this process.
template <class Each>
void for_each_thread(Each&& each) noexcept {
  const auto each_id = [&](const char* name) {
    const auto tid = static_cast<pid_t>(std::strtol(name, nullptr, 10));
    if (tid > 0) each(tid);
  };
  for_each_entry(AT_FDCWD, each_id, "/proc/self/task");
}

/// Reads the name of a thread; "" if it has ended.
inline void read_thread_name(pid_t tid, char (&name)[32]) noexcept {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
  name[0] = '\0';
  const int fd = open_at_high_fd(AT_FDCWD, path, O_RDONLY);
  if (fd < 0) return;
  const ssize_t got = read(fd, name, sizeof(name) - 1);
  close(fd);
  name[got > 0 ? got - 1 : 0] = '\0';  // without the line end
}

/// Returns whether the library has started this thread, judging from the thread's name.
inline bool is_own_thread(pid_t tid) noexcept {
  char name[32];
  read_thread_name(tid, name);
  for (const char* const own : {"lotus-drain", "lotus-sampler", "lotus-waits"}) {
    if (std::strcmp(name, own) == 0) return true;
  }
  return false;
}

/// Calls `each(pid_t)` for every thread of this process except the calling thread and the threads
/// that the library has started.
template <class Each>
void for_each_other_thread(Each&& each) noexcept {
  for_each_thread([&](pid_t tid) {
    if (tid != gettid() && !is_own_thread(tid)) each(tid);
  });
}

/// Returns whether the thread that ran main() has ended, judging from its list of robust mutexes:
/// the C library gives each thread one, and the kernel forgets it when the thread ends.
inline bool main_has_ended() noexcept {
  void* list = nullptr;
  std::size_t bytes = 0;
  const bool known = syscall(SYS_get_robust_list, gettid(), &list, &bytes) == 0 && list != nullptr;
  return known && syscall(SYS_get_robust_list, getpid(), &list, &bytes) == 0 && list == nullptr;
}

/// Returns whether the thread that ran main() has ended, and all other threads except those of the
/// library. Costs one system call as long as main() runs. Without /proc, the other threads are
/// unknown; then the result is whether main() has ended, because the library's threads must not
/// keep the process from ending.
inline bool only_own_threads_are_left() noexcept {
  // The first thread of a process stays listed after its end, but no longer has a program.
  char path[8];
  if (readlink("/proc/self/exe", path, sizeof(path)) >= 0 || errno != ENOENT) return false;
  if (access("/proc/self/task", F_OK) != 0) return main_has_ended();
  bool seen_itself = false;
  bool any_other = false;
  for_each_thread([&](pid_t tid) {
    if (tid == gettid()) {
      seen_itself = true;
    } else if (tid != getpid() && !is_own_thread(tid)) {
      any_other = true;
    }
  });
  return seen_itself && !any_other;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_PROCESS_THREADS_HPP
