// Provides the allocation counts of all threads of this process.
#ifndef LOTUS_MEMORY_COUNTS_HPP
#define LOTUS_MEMORY_COUNTS_HPP

#include "thread_counts.hpp"

namespace lotus::memory {

/// The counts of this thread; null before its first allocation. Declared with __thread in the
/// static TLS block, so that an access is one load; for a C++ thread_local it might call a
/// constructor.
extern
    __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread thread_counts* mine;

/// Returns the counts of a thread for which `mine` is null: new ones, or, if the thread is ending
/// and has released its own, those that all ending threads share.
__attribute__((cold)) thread_counts& first_counts() noexcept;

inline thread_counts& counts() noexcept {
  thread_counts* const known = mine;
  return __builtin_expect(static_cast<long>(known != nullptr), 1) != 0 ? *known : first_counts();
}

}  // namespace lotus::memory

#endif  // LOTUS_MEMORY_COUNTS_HPP
