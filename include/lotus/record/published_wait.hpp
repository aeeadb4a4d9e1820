// Publishes in the ring file that a thread is waiting for a batch. Without this, observers could
// not see a wait that never ends, because a wait is recorded only when the wait ends.
#ifndef LOTUS_RECORD_PUBLISHED_WAIT_HPP
#define LOTUS_RECORD_PUBLISHED_WAIT_HPP

#include <atomic>
#include <cstdint>

#include "lotus/config.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/thread_ring.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Gives this thread a ring if it has none, so that a wait is published even if the thread has
/// recorded nothing yet.
LOTUS_DETAIL_RARE void get_ring() noexcept;

/// Stores the start of this thread's wait in the ring file, which survives even kill -9.
LOTUS_DETAIL_ALWAYS_INLINE void publish_wait() noexcept {
  if (!is_recording()) return;
  if (this_ring == nullptr || gate_of(*this_ring).waiting_since == nullptr) get_ring();
  if (this_ring == nullptr) return;
  std::atomic<std::uint64_t>* const waiting_since = gate_of(*this_ring).waiting_since;
  if (waiting_since != nullptr) waiting_since->store(now_ticks(), std::memory_order_relaxed);
}

/// Publishes that this thread no longer waits. Call this function when a wait ends or is canceled;
/// without a wait the call has no effect.
LOTUS_DETAIL_ALWAYS_INLINE void publish_end_of_wait() noexcept {
  thread_ring* const p = this_ring;
  std::atomic<std::uint64_t>* const waiting_since =
      p == nullptr ? nullptr : gate_of(*p).waiting_since;
  if (waiting_since == nullptr) return;
  const std::uint64_t since = waiting_since->load(std::memory_order_relaxed);
  if (since == 0) return;
  const std::uint64_t ticks = now_ticks() - since;
  if (ticks > p->longest_wait_ticks.load(std::memory_order_relaxed)) {
    p->longest_wait_ticks.store(ticks, std::memory_order_relaxed);
  }
  waiting_since->store(0, std::memory_order_relaxed);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_PUBLISHED_WAIT_HPP
