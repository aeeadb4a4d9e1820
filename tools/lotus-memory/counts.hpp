// The allocations of all threads of this process.
#ifndef LOTUS_MEMORY_COUNTS_HPP
#define LOTUS_MEMORY_COUNTS_HPP

#include "thread_counts.hpp"

namespace lotus::memory {

/// The counts of this thread; null before its first allocation. Declared with __thread in the
/// static TLS block, so that an access is one load: a C++ thread_local might call a constructor.
extern
    __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread thread_counts* mine;

/// Creates the counts of a thread that has none yet, or has already released them.
__attribute__((cold)) thread_counts& first_counts() noexcept;

inline thread_counts& counts() noexcept {
  thread_counts* const known = mine;
  return __builtin_expect(static_cast<long>(known != nullptr), 1) != 0 ? *known : first_counts();
}

}  // namespace lotus::memory

#endif  // LOTUS_MEMORY_COUNTS_HPP
