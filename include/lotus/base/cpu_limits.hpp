// Determines how many CPUs this process may use, and how often a limit stopped it.
#ifndef LOTUS_BASE_CPU_LIMITS_HPP
#define LOTUS_BASE_CPU_LIMITS_HPP

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "lotus/base/file.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The CPUs on which a thread may run.
struct allowed_cpus {
  int count = 0;   ///< 0: unknown
  int first = -1;  ///< the lowest number of these CPUs
};

/// Returns the CPUs in the affinity mask of a thread.
/// @param tid  id of a thread of any process; 0: this thread.
inline allowed_cpus allowed_cpus_of(pid_t tid) noexcept {
  // The mask is an array, because a system may have more CPUs than one cpu_set_t has bits.
  cpu_set_t masks[8];
  CPU_ZERO_S(sizeof(masks), masks);
  if (sched_getaffinity(tid, sizeof(masks), masks) != 0) return {};
  allowed_cpus found{CPU_COUNT_S(sizeof(masks), masks), 0};
  const int all = static_cast<int>(8 * sizeof(masks));
  while (found.first < all && !CPU_ISSET_S(found.first, sizeof(masks), masks)) ++found.first;
  return found;
}

/// Returns the CPUs on which this process may run: those of its main thread, because other threads
/// may have been bound to a part of them.
inline allowed_cpus allowed_cpus_of_process() noexcept {
  const allowed_cpus main = allowed_cpus_of(getpid());
  return main.count > 0 ? main : allowed_cpus_of(0);
}

/// Returns the number of these CPUs; 0 if unknown.
inline int cpus_of_affinity() noexcept {
  return allowed_cpus_of_process().count;
}

/// Returns the number of CPUs on which the parent process may run; 0 if unknown, such as for a
/// parent outside of this container.
inline int cpus_of_parent() noexcept {
  const pid_t parent = getppid();
  return parent > 0 ? allowed_cpus_of(parent).count : 0;
}

/// Returns how many CPUs a limit, a text "<quota> <period>", allows; 0: no limit.
inline double cpus_of_quota(const char* text) noexcept {
  char* quota_end = nullptr;
  const double quota = strtod(text, &quota_end);
  const double period = strtod(quota_end, nullptr);
  return quota_end != text && quota > 0 && period > 0 ? quota / period : 0;
}

/// Texts that are too large for a small stack.
struct cgroup_texts {
  char groups[4096];
  char folder[4096 + 64];
  char file[4096 + 128];
};

/// Calls visit(texts, is_version_2) for each cgroup that may limit this process's CPU time and for
/// its ancestors: those of version 2, and those of the controller "cpu" of version 1. `folder` is
/// then the folder of the cgroup, which may not exist in a container; `file` may be used.
template <class Visit>
LOTUS_DETAIL_COLD void for_each_cpu_cgroup(Visit&& visit) noexcept {
  const mapped<cgroup_texts> memory;
  if (!memory) return;
  cgroup_texts& texts = *memory;
  read_beginning("/proc/self/cgroup", texts.groups);
  char* line = texts.groups;
  while (line != nullptr && *line != '\0') {
    char* const end = std::strchr(line, '\n');
    if (end != nullptr) *end = '\0';
    // A line is "<number>:<controllers>:<path>". Version 2 has no controllers here.
    char* const controllers = std::strchr(line, ':');
    char* const path = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    line = end == nullptr ? nullptr : end + 1;
    if (path == nullptr) continue;
    *path = '\0';
    char around[260];
    std::snprintf(around, sizeof(around), ",%s,", controllers + 1);
    const bool is_version_2 = controllers[1] == '\0';
    if (!is_version_2 && std::strstr(around, ",cpu,") == nullptr) continue;
    char* const own = path + 1;
    while (true) {
      std::snprintf(texts.folder, sizeof(texts.folder), "/sys/fs/cgroup%s%s",
                    is_version_2 ? "" : "/cpu", own);
      visit(texts, is_version_2);
      char* const last = std::strrchr(own, '/');
      if (last == nullptr) break;
      *last = '\0';
    }
  }
}

/// Reads the beginning of a file in the cgroup's folder.
template <std::size_t Bytes>
std::size_t read_of_cgroup(cgroup_texts& texts, const char* name, char (&text)[Bytes]) noexcept {
  std::snprintf(texts.file, sizeof(texts.file), "%s/%s", texts.folder, name);
  return read_beginning(texts.file, text);
}

/// Returns the lowest limit, in CPUs, of this process's cgroups and their ancestors; 0: no limit,
/// or unknown.
LOTUS_DETAIL_COLD inline double cpus_of_cgroups() noexcept {
  double least = 0;
  for_each_cpu_cgroup([&least](cgroup_texts& texts, bool is_version_2) {
    char quota[64];
    char period[64] = "";
    read_of_cgroup(texts, is_version_2 ? "cpu.max" : "cpu.cfs_quota_us", quota);
    if (!is_version_2) read_of_cgroup(texts, "cpu.cfs_period_us", period);
    char text[160];
    std::snprintf(text, sizeof(text), "%.*s %s", static_cast<int>(std::strcspn(quota, "\n")), quota,
                  period);
    const double cpus = cpus_of_quota(text);
    if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
  });
  return least;
}

/// In how many periods the limits of cgroups applied, and in how many they stopped this process.
struct cpu_periods {
  unsigned long long all = 0;
  unsigned long long stopped = 0;
};

/// Returns the periods of that cgroup of this process, or ancestor, which was stopped most often.
LOTUS_DETAIL_COLD inline cpu_periods periods_of_cgroups() noexcept {
  cpu_periods most;
  for_each_cpu_cgroup([&most](cgroup_texts& texts, bool) {
    char text[512];
    read_of_cgroup(texts, "cpu.stat", text);
    const auto value = [&text](const char* key) {
      const char* const at = std::strstr(text, key);
      return at == nullptr ? 0 : strtoull(at + std::strlen(key), nullptr, 10);
    };
    const cpu_periods now{value("nr_periods "), value("nr_throttled ")};
    if (now.all > 0 && now.stopped >= most.stopped) most = now;
  });
  return most;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_CPU_LIMITS_HPP
