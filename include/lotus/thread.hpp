// This thread's ring, and the two rare calls behind it: none yet, full.
#ifndef LOTUS_THREAD_HPP
#define LOTUS_THREAD_HPP

#include <atomic>
#include <cstdint>

#include "lotus/clock.hpp"
#include "lotus/config.hpp"
#include "lotus/layout.hpp"
#include "lotus/lock.hpp"
#include "lotus/open_logs.hpp"
#include "lotus/process.hpp"
#include "lotus/record.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

struct backlog_chunk;

/// One living thread's way into its ring. Stays where it is until the thread is dead, whatever
/// becomes of the ring; then another thread takes it over. Never freed.
struct alignas(64) producer {
  // For the owning thread; the session changes them only where the owner cannot be storing.
  record* slots = nullptr;
  std::uint64_t mask = 0;
  std::atomic<std::uint64_t>* published = &none_published;
  std::atomic<std::uint32_t> storing{0};  ///< 1 while a record is stored, 2 in a handler meanwhile

  /// Positions below it are free. 0 sends every record the slow way. Written under `guard`.
  alignas(64) std::atomic<std::uint64_t> limit{0};
  std::atomic<std::uint64_t> interrupt_limit{0};
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<bool> drained_itself{false};  ///< since the drain thread last came by
  std::atomic<std::uint64_t> none_published{
      0};  ///< stands in for a ring's counter before there is one

  // For the session, under `guard`.
  alignas(64) mutex guard;
  std::atomic<std::uint32_t> tid{0};  ///< 0: free
  ring_block* ring = nullptr;
  bool ring_in_file = false;  ///< what the ring holds survives the process
  bool attached = false;      ///< the ring is the running session's; else left over from one before
  open_logs logs;  ///< kept open between drains, for as many threads as the session likes
  bool logs_kept_open = false;
  backlog_chunk* backlog_first = nullptr;
  backlog_chunk* backlog_last = nullptr;
  producer* next = nullptr;
};

LOTUS_DETAIL_PER_MODULE inline thread_local producer* this_producer = nullptr;

LOTUS_DETAIL_COLD inline std::uint64_t monotonic_ticks() noexcept {
  return static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
}

/// Clock ticks as the session counts them: of the hardware counter, or ns of CLOCK_MONOTONIC.
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t now_ticks() noexcept {
  const bool hardware = this_module.hardware_clock.load(std::memory_order_relaxed);
  return LOTUS_DETAIL_LIKELY(hardware) ? hardware_ticks() : monotonic_ticks();
}

LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void push_first(const record& r) noexcept {
  const services& s = join_session(true);
  this_producer = s.this_thread();
  if (this_producer != nullptr) s.push_slow(*this_producer, r);
}

LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void push_rarely(producer& p,
                                                                  const record& r) noexcept {
  const services& s = *this_module.hub.load(std::memory_order_acquire);
  if (p.storing.load(std::memory_order_relaxed) != 0) {
    s.push_nested(p, r);
  } else {
    s.push_slow(p, r);
  }
}

/// Appends one record to this thread's ring; when the ring is full it drains first, so nothing is
/// lost. The record is complete for every reader, also after a kill, once this returns.
/// Errors: none thrown. Thread and signal safety: all. Cost: bench/scope_bench.cpp.
LOTUS_DETAIL_ALWAYS_INLINE void push(std::uint64_t begin_ticks, std::uint64_t end_ticks,
                                     record_tag tag) noexcept {
  producer* const p = this_producer;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) return push_first({begin_ticks, end_ticks, tag});
  if (LOTUS_DETAIL_UNLIKELY(p->storing.load(std::memory_order_relaxed) != 0)) {
    return push_rarely(*p, {begin_ticks, end_ticks, tag});
  }
  // A handler that runs between these two stores sees `storing` and keeps to its own lane; one that
  // ran before has put everything back as it was.
  p->storing.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint64_t at = p->published->load(std::memory_order_relaxed);
  if (LOTUS_DETAIL_UNLIKELY(at >= p->limit.load(std::memory_order_acquire))) {
    p->storing.store(0, std::memory_order_relaxed);
    return push_rarely(*p, {begin_ticks, end_ticks, tag});
  }
  p->slots[at & p->mask] = {begin_ticks, end_ticks, tag};
  p->published->store(at + 1, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  p->storing.store(0, std::memory_order_relaxed);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_THREAD_HPP
