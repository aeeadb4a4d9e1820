// CPU time of operations: what the clock tells within each, and what the logs tell of it.
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

/// Of one operation, in all its calls.
struct account {
  std::int64_t wall_ns = 0;
  std::int64_t cpu_ns = 0;
  std::int64_t calls = 0;
  /// Off the CPU without a context switch: a machine below this one took it. Nobody can notice
  /// that before the next switch, in whatever operation.
  std::int64_t stolen_ns = 0;
};

/// What the machine below took of all CPUs so far, as far as that is told.
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

/// Calls `work` within a scope, and adds what the clock within it tells. Around it, it would tell
/// of the library's own readings, too.
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

/// What the logs say: for each name of an operation that has none within it, wall time less time
/// off the CPU between its begin and its end.
inline std::map<std::string, account> read_accounts(const fs::path& run) {
  std::map<std::string, account> accounts;
  const auto off = read_beside(run, "off_cpu");
  for (const auto& l : read_logs(run)) {
    account& a = accounts[l.name];
    ++a.calls;
    a.wall_ns += l.duration_ns;
    a.cpu_ns += l.duration_ns;
    for (const auto& o : off) {
      // Found where the operation began, it belongs to what was before.
      if (o.tid == l.tid && o.time_ns > l.start_ns && o.time_ns <= l.end_ns()) a.cpu_ns -= o.a;
    }
  }
  return accounts;
}

}  // namespace support

#endif  // LOTUS_TESTS_CPU_ACCOUNTS_HPP
