// Provides a macro that uses the CPU for a given time.
#ifndef LOTUS_BENCH_SAMPLED_WORK_HPP
#define LOTUS_BENCH_SAMPLED_WORK_HPP

#include <time.h>

#include <cstdint>

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// Uses about `ms` of CPU time of this thread. This is a macro and not a function, so that samples
/// show the calling function.
#define LOTUS_USE_CPU(ms)                                                                       \
  do {                                                                                          \
    const std::uint64_t until =                                                                 \
        clock_ns(CLOCK_THREAD_CPUTIME_ID) + static_cast<std::uint64_t>(ms) * 1'000'000;         \
    volatile std::uint64_t x = 1;                                                               \
    do {                                                                                        \
      for (int i = 0; i < 50'000; ++i) x = x * 6364136223846793005ULL + 1442695040888963407ULL; \
    } while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until);                                        \
  } while (false)

#endif  // LOTUS_BENCH_SAMPLED_WORK_HPP
