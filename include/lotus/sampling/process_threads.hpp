// Lists the threads of this process, and determines which of them the library has started.
#ifndef LOTUS_SAMPLING_PROCESS_THREADS_HPP
#define LOTUS_SAMPLING_PROCESS_THREADS_HPP

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "lotus/base/descriptor.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Calls `each(pid_t)` for every thread of this process.
template <class Each>
void for_each_thread(Each&& each) noexcept {
  const int fd = open_at_high_fd(AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY);
  DIR* tasks = fd >= 0 ? fdopendir(fd) : nullptr;
  if (tasks == nullptr && fd >= 0) close(fd);
  if (tasks == nullptr) return;
  while (const dirent* entry = readdir(tasks)) {
    const auto tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (tid > 0) each(tid);
  }
  closedir(tasks);
}

/// Returns whether the library has started this thread, judging from the thread's name.
inline bool is_own_thread(pid_t tid) noexcept {
  char path[64];
  char name[32] = {};
  std::snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
  const int fd = open_at_high_fd(AT_FDCWD, path, O_RDONLY);
  if (fd < 0) return false;
  const ssize_t got = read(fd, name, sizeof(name) - 1);
  close(fd);
  if (got <= 0) return false;
  for (const char* const own : {"lotus-drain\n", "lotus-sampler\n", "lotus-waits\n"}) {
    if (std::strcmp(name, own) == 0) return true;
  }
  return false;
}

/// Calls `each(pid_t)` for every thread of this process except the calling one and the library's
/// own.
template <class Each>
void for_each_other_thread(Each&& each) noexcept {
  for_each_thread([&](pid_t tid) {
    if (tid != gettid() && !is_own_thread(tid)) each(tid);
  });
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_PROCESS_THREADS_HPP
