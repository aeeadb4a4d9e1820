// Determines how many CPUs this process may use.
#ifndef LOTUS_STORE_CPU_LIMITS_HPP
#define LOTUS_STORE_CPU_LIMITS_HPP

#include <sched.h>
#include <stdlib.h>

#include <cstdio>
#include <cstring>

#include "lotus/base/file.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns the number of CPUs on which this thread may run (its affinity mask); 0 if unknown.
inline int cpus_of_affinity() noexcept {
  // The mask is an array, because a system may have more CPUs than one cpu_set_t has bits.
  cpu_set_t masks[8];
  CPU_ZERO_S(sizeof(masks), masks);
  if (sched_getaffinity(0, sizeof(masks), masks) != 0) return 0;
  return CPU_COUNT_S(sizeof(masks), masks);
}

/// Returns how many CPUs a cgroup's limit, a text "<quota> <period>", allows; 0: no limit.
inline double cpus_of_quota(const char* text) noexcept {
  char* quota_end = nullptr;
  const double quota = strtod(text, &quota_end);
  const double period = strtod(quota_end, nullptr);
  return quota_end != text && quota > 0 && period > 0 ? quota / period : 0;
}

/// Returns the lowest limit, in CPUs, of this process's cgroup (version 2) and that cgroup's
/// ancestors; 0: no limit, or unknown.
LOTUS_DETAIL_COLD inline double cpus_of_cgroups() noexcept {
  struct texts {
    char groups[4096];
    char file[4096 + 64];
  };
  const mapped<texts> memory;
  if (!memory) return 0;
  auto& [groups, file] = *memory;
  read_beginning("/proc/self/cgroup", groups);
  const char* const line = std::strncmp(groups, "0::/", 4) == 0 ? groups : nullptr;
  if (line == nullptr) return 0;
  char* const path = groups + 3;
  path[std::strcspn(path, "\n")] = '\0';
  double least = 0;
  while (true) {
    char text[64];
    std::snprintf(file, sizeof(file), "/sys/fs/cgroup%s/cpu.max", path);
    read_beginning(file, text);
    const double cpus = cpus_of_quota(text);
    if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
    char* const last = std::strrchr(path, '/');
    if (last == nullptr) return least;
    *last = '\0';
  }
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_CPU_LIMITS_HPP
