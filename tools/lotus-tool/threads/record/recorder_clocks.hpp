// Reads the clocks that a thread_recorder uses.
#ifndef LOTUS_TOOL_THREADS_RECORD_RECORDER_CLOCKS_HPP
#define LOTUS_TOOL_THREADS_RECORD_RECORDER_CLOCKS_HPP

#include <sys/resource.h>
#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_gettime

#include <chrono>
#include <cstdint>

namespace lotus::tool {

/// The mean CPU time of a thread between two of its samples.
inline constexpr std::uint64_t cpu_interval_ns = 1'000'000'000 / 99;
/// Returns the CPU time of the calling thread.
inline std::uint64_t own_cpu_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// Returns the CPU time of all child processes that have ended, and of their children.
inline std::uint64_t children_cpu_ns() noexcept {
  rusage used{};
  if (::getrusage(RUSAGE_CHILDREN, &used) != 0) return 0;
  const auto ns = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_usec) * 1000;
  };
  return ns(used.ru_utime) + ns(used.ru_stime);
}

inline double seconds(std::chrono::steady_clock::duration time) noexcept {
  return std::chrono::duration<double>(time).count();
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_RECORD_RECORDER_CLOCKS_HPP
