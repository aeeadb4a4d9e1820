// How the recorder takes a record that does not just go into its thread's ring.
#ifndef LOTUS_STORE_RECORDER_RECORDER_PUSHES_HPP
#define LOTUS_STORE_RECORDER_RECORDER_PUSHES_HPP

#include <atomic>
#include <cstdint>

#include "lotus/base/fork.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/backlog.hpp"
#include "lotus/store/recorder.hpp"
#include "lotus/store/storage.hpp"
#include "lotus/store/storage_rings.hpp"
LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline std::uint64_t storage::drop_oldest(producer& p) noexcept {
  if (p.backlog_first == nullptr) return 0;
  ring_block& oldest = p.backlog_first->ring;
  const std::uint64_t records = lane_heads{oldest}.beyond(oldest.committed());
  detail::drop_oldest(p, backlog_bytes_);
  return records;
}

inline void recorder::push_slow(producer& p, const record& r) noexcept {
  if (this_thread_forks) return drop(p);
  // A limit other than 0 means a ring that is merely full, or half.
  if (p.limit.load(std::memory_order_relaxed) != 0 && drops_when_full()) {
    if (!push_or_drop(p, r)) drop(p);
    return;
  }
  const signals_blocked quiet;
  const locked guard{p.guard};
  if (!is_on()) return;
  if (!p.attached && !attach(p)) return drop(p);
  if (p.ring->full() && !make_room(p)) return drop(p);
  p.ring->append(r);
  if (write_through_.load(std::memory_order_relaxed)) drain(p);
}

/// From a signal handler that interrupted this thread while it was storing a record. A handler
/// within a handler within these few instructions is dropped and counted.
inline void recorder::push_nested(producer& p, const record& r) const noexcept {
  // Without a ring, before a thread's first record or where recording is off, there is no room.
  if (p.interrupt_limit.load(std::memory_order_acquire) == 0) {
    if (is_on()) drop(p);
    return;
  }
  if (p.storing.load(std::memory_order_relaxed) != 1) return drop(p);
  p.storing.store(2, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ring_block& ring = *p.ring;
  const std::uint64_t at = ring.published[1].load(std::memory_order_relaxed);
  if (at < p.interrupt_limit.load(std::memory_order_acquire)) {
    ring.slot(1, at) = r;
    ring.published[1].store(at + 1, std::memory_order_release);
  } else {
    drop(p);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  p.storing.store(1, std::memory_order_relaxed);
}

inline given_ticks recorder::ticks_of_span(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
  const signals_blocked quiet;
  const session_clock::placed_span span = clock_.place(begin_ns, end_ns);
  // Before the span is anywhere, so that whoever finds it, also after a kill, is told.
  if (is_on() && !this_thread_forks) storage_.tell_of_span(span_distance{span.over_for_ns});
  return {span.begin_ticks, span.end_ticks};
}

/// Where recording is on and the thread has none yet.
inline void recorder::get_ring(producer& p) noexcept {
  if (this_thread_forks || p.storing.load(std::memory_order_relaxed) != 0) return;
  const signals_blocked quiet;
  const locked guard{p.guard};
  if (is_on() && !p.attached) attach(p);
}

/// Room in a full ring: what it holds goes to the disk, or where that does not take it, or must not
/// be waited for, to memory.
inline bool recorder::make_room(producer& p) noexcept {
  if (!drops_when_full()) {
    p.drained_itself.store(true, std::memory_order_relaxed);
    return drain(p) == 0 || set_aside(p);
  }
  while (!set_aside(p)) {
    if (p.backlog_first == nullptr) return false;
    p.dropped.fetch_add(storage_.drop_oldest(p), std::memory_order_relaxed);
  }
  return true;
}

/// Without ever waiting for the disk. A ring that is half full wakes the drain thread. A full one
/// goes to memory, the oldest of which is dropped in the end; unless the drain thread is amid
/// writing it.
inline bool recorder::push_or_drop(producer& p, const record& r) noexcept {
  std::uint64_t limit = p.limit.load(std::memory_order_acquire);
  const std::uint64_t last_limit = p.last_limit.load(std::memory_order_acquire);
  if (limit == 0) return false;
  if (limit < last_limit && p.published->load(std::memory_order_relaxed) < last_limit) {
    p.limit.compare_exchange_strong(limit, last_limit);
    drain_thread_.wake();
    push(r.begin_ticks, r.end_ticks, r.tag);
    return true;
  }
  const signals_blocked quiet;
  if (!p.guard.try_lock()) return false;
  const bool stored = is_on() && p.attached && (!p.ring->full() || make_room(p));
  if (stored) p.ring->append(r);
  p.guard.unlock();
  return stored;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDER_RECORDER_PUSHES_HPP
