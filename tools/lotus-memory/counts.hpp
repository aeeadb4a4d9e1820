// Provides access to the allocation counts of the calling thread.
#ifndef LOTUS_MEMORY_COUNTS_HPP
#define LOTUS_MEMORY_COUNTS_HPP

#include "thread_counts.hpp"

namespace lotus::memory {

/// The counts of this thread; null before its first allocation. __thread and the TLS model make
/// each access a single load. An access to a C++ thread_local might call a constructor.
extern
    __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread thread_counts* mine;

/// Returns the counts for a thread whose `mine` is null. Usually creates counts or takes over those
/// of an ended thread. A thread that has already released its counts, because it is ending, gets
/// shared counts instead.
__attribute__((cold)) thread_counts& first_counts() noexcept;

inline thread_counts& counts() noexcept {
  thread_counts* const known = mine;
  return __builtin_expect(static_cast<long>(known != nullptr), 1) != 0 ? *known : first_counts();
}

}  // namespace lotus::memory

#endif  // LOTUS_MEMORY_COUNTS_HPP
