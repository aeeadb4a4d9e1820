// What the threads of this process have allocated and freed.
#ifndef LOTUS_MEMORY_COUNTS_HPP
#define LOTUS_MEMORY_COUNTS_HPP

#include "thread_counts.hpp"

namespace lotus::memory {

/// In the thread's own block of memory, and not thread_local, which might have to be constructed: a
/// load and no call.
extern
    __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread thread_counts* mine;

/// Of a thread that has none yet, or none any more. Never null.
__attribute__((cold)) thread_counts& first_counts() noexcept;

inline thread_counts& counts() noexcept {
  thread_counts* const known = mine;
  return __builtin_expect(static_cast<long>(known != nullptr), 1) != 0 ? *known : first_counts();
}

}  // namespace lotus::memory

#endif  // LOTUS_MEMORY_COUNTS_HPP
