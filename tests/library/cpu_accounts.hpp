// Provides the CPU times of operations: as measured by the test, and as computed from the logs.
#ifndef LOTUS_TESTS_CPU_ACCOUNTS_HPP
#define LOTUS_TESTS_CPU_ACCOUNTS_HPP

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <string>

#include "lotus/base/clock.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

namespace support {

using lotus::detail::clock_ns;

/// Sums over all calls of one operation.
struct account {
  std::int64_t wall_ns = 0;
  std::int64_t cpu_ns = 0;
  std::int64_t calls = 0;
  /// Time in ns that the hypervisor took from the thread, without a context switch in this virtual
  /// machine. The library notices this time only at the next context switch, perhaps in another
  /// operation.
  std::int64_t stolen_ns = 0;
};

/// Returns how much time the hypervisor has taken from all CPUs since boot; 0 if the kernel does
/// not report it.
inline std::int64_t stolen_of_all_cpus_ns() {
  std::ifstream in{"/proc/stat"};
  std::string word;
  std::int64_t ticks = 0;
  in >> word;
  for (int column = 0; column < 8; ++column) in >> ticks;
  return in ? ticks * (1'000'000'000 / sysconf(_SC_CLK_TCK)) : 0;
}

inline long switches_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

/// Calls `work` in a scope, and adds the CPU time measured inside the scope to `truth`. Clocks that
/// are read outside the scope would also measure the library's own clock reads.
template <class Work>
void call(const char* name, account& truth, Work work) {
  LOTUS_SCOPE_DYNAMIC(name);
  const long switches = switches_of_this_thread();
  const std::int64_t wall = clock_ns(CLOCK_MONOTONIC_RAW);
  const std::int64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  work();
  const std::int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
  const std::int64_t off_ns = clock_ns(CLOCK_MONOTONIC_RAW) - wall - cpu_ns;
  if (off_ns > 0 && switches_of_this_thread() == switches) truth.stolen_ns += off_ns;
  truth.cpu_ns += cpu_ns;
  ++truth.calls;
}

/// Computes the sums of each operation from the logs. The operations must not contain others: the
/// CPU time is the duration minus the times off the CPU that ended inside the operation.
inline std::map<std::string, account> read_accounts(const fs::path& run) {
  std::map<std::string, account> accounts;
  const auto off = read_side_log(run, "off_cpu");
  for (const auto& l : read_logs(run)) {
    account& a = accounts[l.name];
    ++a.calls;
    a.wall_ns += l.duration_ns;
    a.cpu_ns += l.duration_ns;
    for (const auto& o : off) {
      // Time off the CPU that ended exactly when the operation began is not part of the operation.
      if (o.tid == l.tid && o.time_ns > l.start_ns && o.time_ns <= l.end_ns()) a.cpu_ns -= o.a;
    }
  }
  return accounts;
}

}  // namespace support

#endif  // LOTUS_TESTS_CPU_ACCOUNTS_HPP
