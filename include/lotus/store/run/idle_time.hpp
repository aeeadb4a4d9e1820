// Reads how long the CPUs that this process may use were idle. From this time lotus-tool computes
// how much of the CPUs other programs used.
#ifndef LOTUS_STORE_RUN_IDLE_TIME_HPP
#define LOTUS_STORE_RUN_IDLE_TIME_HPP

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lotus/base/descriptor.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Sums the idle times in lines of /proc/stat such as "cpu3 20 0 15 830 2 0 0 0 0 0". The fourth
/// number is the time in which the CPU was idle, and the fifth the time in which it was idle while
/// an input or output was in progress.
class idle_time_of_lines {
 public:
  /// @param cpus  the CPUs whose times are added; borrowed.
  idle_time_of_lines(const cpu_set_t* cpus, std::size_t cpus_bytes) noexcept
      : cpus_(cpus), cpus_bytes_(cpus_bytes) {}

  /// Adds the idle time in a line of /proc/stat, if the line is about one of the CPUs `cpus`.
  /// Returns false if the line is not about CPUs; then no further line is about CPUs either.
  bool add(const char* line) noexcept {
    if (std::strncmp(line, "cpu", 3) != 0) return false;
    if (line[3] < '0' || line[3] > '9') return true;  // the sum over all CPUs
    char* at = nullptr;
    const unsigned long cpu = strtoul(line + 3, &at, 10);
    if (!CPU_ISSET_S(cpu, cpus_bytes_, cpus_)) return true;
    for (int number = 1; number <= 5; ++number) {
      const unsigned long long value = strtoull(at, &at, 10);
      if (number >= 4) clock_ticks_ += value;
    }
    ++counted_;
    return true;
  }

  /// Number of CPUs whose times are in the sum.
  int counted() const noexcept { return counted_; }
  /// The sum of the idle times, in clock ticks of the system, of which there are _SC_CLK_TCK per
  /// second.
  std::uint64_t clock_ticks() const noexcept { return clock_ticks_; }

 private:
  const cpu_set_t* cpus_;
  std::size_t cpus_bytes_;
  int counted_ = 0;
  std::uint64_t clock_ticks_ = 0;
};

/// Returns how long the CPUs on which this thread may run have been idle since the system started:
/// the sum over these CPUs in ns; -1 if it is unknown.
LOTUS_DETAIL_COLD inline std::int64_t idle_ns_of_cpus() noexcept {
  cpu_set_t masks[8];
  CPU_ZERO_S(sizeof(masks), masks);
  const long ticks_per_s = sysconf(_SC_CLK_TCK);
  if (ticks_per_s <= 0 || sched_getaffinity(0, sizeof(masks), masks) != 0) return -1;
  const mapped<char[4096]> memory;
  const int fd = memory ? open_at_high_fd(AT_FDCWD, "/proc/stat", O_RDONLY) : -1;
  if (fd < 0) return -1;
  idle_time_of_lines idle(masks, sizeof(masks));
  char(&text)[4096] = *memory;
  std::size_t kept = 0;  // bytes of an incomplete line at the beginning of `text`
  bool more = true;
  while (more) {
    const ssize_t got = read(fd, text + kept, sizeof(text) - 1 - kept);
    if (got <= 0) break;
    const std::size_t bytes = kept + static_cast<std::size_t>(got);
    text[bytes] = '\0';
    char* line = text;
    for (char* end = nullptr; more && (end = std::strchr(line, '\n')) != nullptr; line = end + 1) {
      *end = '\0';
      more = idle.add(line);
    }
    kept = static_cast<std::size_t>(text + bytes - line);
    std::memmove(text, line, kept);
  }
  close(fd);
  if (idle.counted() != CPU_COUNT_S(sizeof(masks), masks)) return -1;
  return static_cast<std::int64_t>(idle.clock_ticks()) * (1'000'000'000 / ticks_per_s);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_IDLE_TIME_HPP
