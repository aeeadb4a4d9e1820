// The allocations of all threads of this process.
#ifndef LOTUS_MEMORY_COUNTS_HPP
#define LOTUS_MEMORY_COUNTS_HPP

#include "thread_counts.hpp"

namespace lotus::memory {

/// Stored in the static TLS block and not as a C++ thread_local, which might need construction:
/// access takes one load and no call.
extern
    __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread thread_counts* mine;

/// The counts for a thread that has none yet, or none any more. Never null.
__attribute__((cold)) thread_counts& first_counts() noexcept;

inline thread_counts& counts() noexcept {
  thread_counts* const known = mine;
  return __builtin_expect(static_cast<long>(known != nullptr), 1) != 0 ? *known : first_counts();
}

}  // namespace lotus::memory

#endif  // LOTUS_MEMORY_COUNTS_HPP
