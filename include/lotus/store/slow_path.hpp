// Provides the slow path of recording, which a thread takes if it cannot store a record directly.
#ifndef LOTUS_STORE_SLOW_PATH_HPP
#define LOTUS_STORE_SLOW_PATH_HPP

#include <atomic>
#include <cstdint>
#include <utility>

#include "lotus/aggregates/aggregates.hpp"
#include "lotus/aggregates/store/aggregate_store.hpp"
#include "lotus/base/fork.hpp"
#include "lotus/base/interruption.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/base/stack_pointer.hpp"
#include "lotus/config.hpp"
#include "lotus/record/message.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/background_thread.hpp"
#include "lotus/store/cpu_clock.hpp"
#include "lotus/store/recording_state.hpp"
#include "lotus/store/storage.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Gives threads rings, makes room in full rings, and assigns threads to loaders. The functions
/// that the owning thread calls block signals and lock the producer's guard themselves; the caller
/// of the other functions holds the guard. All functions are thread-safe.
class LOTUS_DETAIL_PER_MODULE slow_path {
 public:
  slow_path(const recording_state& state, storage& rings, aggregate_store& aggregates,
            cpu_clock& cpu, background_thread& drains) noexcept
      : state_{state}, rings_{rings}, aggregates_{aggregates}, cpu_{cpu}, drains_{drains} {}

  // --- Functions that the owning thread calls.

  void push(producer& p, const record& r) noexcept {
    if (this_thread_forks) return drop(p);
    // If full rings drop records, open_lanes() first sets the limit to half of the ring. So a limit
    // other than 0 means here that the ring is at least half full.
    if (gate_of(p).limit.load(std::memory_order_relaxed) != 0 && state_.drops_when_full()) {
      if (!push_or_drop(p, r)) drop(p);
      return;
    }
    const signals_blocked quiet;
    const locked guard{p.guard};
    if (!state_.is_on()) return;
    if (!p.attached && !attach(p)) return drop(p);
    const bool full = p.ring->full();
    const bool moves = std::exchange(p.ring_file_deleted, false);
    if ((full || moves) && !make_room(p) && full) return drop(p);
    p.ring->append(r);
    if (state_.writes_through()) drain(p);
  }

  /// Stores a record of a signal handler that interrupted this thread while it was storing another
  /// record. If a second handler interrupts the first one here, or if there is no room, the record
  /// is dropped and counted, which is reported once.
  void push_nested(producer& p, const record& r) noexcept {
    // interrupt_limit is 0 while recording is off, and as long as the thread has no ring.
    if (gate_of(p).interrupt_limit.load(std::memory_order_acquire) == 0) {
      if (state_.is_on()) drop(p);
      return;
    }
    const std::uintptr_t place = p.storing_nested.load(std::memory_order_relaxed);
    if (place != 0 && is_interrupted(place)) return drop_nested(p);
    p.storing_nested.store(stack_pointer(), std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ring_block& ring = *p.ring;
    const std::uint64_t at = ring.published[1].load(std::memory_order_relaxed);
    const bool room = at < gate_of(p).interrupt_limit.load(std::memory_order_acquire);
    if (room) {
      ring.slot(1, at) = r;
      ring.published[1].store(at + 1, std::memory_order_release);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    p.storing_nested.store(0, std::memory_order_relaxed);
    if (!room) drop_nested(p);
  }

  /// Adds an aggregated call after allocating memory for it. Returns false if the call is lost
  /// because there is no memory.
  bool aggregate(producer& p, const aggregate_call& call) noexcept {
    if (this_thread_forks) return lose(p);
    const signals_blocked quiet;
    const locked guard{p.guard};
    if (!state_.is_on()) return false;
    if (state_.writes_through()) {
      aggregates_.write_late(p, call);
      return true;
    }
    return aggregates_.add(p, call) || lose(p);
  }

  /// Gives the thread a ring if recording is on and the thread has none.
  void get_ring(producer& p) noexcept {
    if (this_thread_forks || interrupts_storing(p)) return;
    const signals_blocked quiet;
    const locked guard{p.guard};
    if (state_.is_on() && !p.attached) attach(p);
  }

  /// Assigns the thread's later records to a loader. Returns the thread's previous loader.
  std::uint32_t enter_loader(producer& p, std::uint32_t loader) noexcept {
    if (p.loader == loader || interrupts_storing(p)) return p.loader;
    const signals_blocked quiet;
    const locked guard{p.guard};
    const std::uint32_t before = p.loader;
    // Without a ring, no loader record is needed: a ring that is attached later begins with
    // p.loader.
    if (p.attached && state_.is_on()) {
      // This record is not dropped even if full rings drop records, because without it all later
      // records would be assigned to the wrong loader.
      if (p.ring->full() && drain(p) != 0 && !rings_.set_aside(p)) {
        drop(p);
        return before;
      }
      p.ring->append({0, 0, {event_kind::loader, loader}});
      open_lanes(p);
    }
    p.loader = loader;
    return before;
  }

  /// Returns how long the thread was off the CPU; the caller records this time. If full rings drop
  /// records, records of kind off_cpu are dropped first: they may not use the last quarter of a
  /// ring.
  off_cpu_time read_cpu(producer& p, cpu_watch& watch, const off_cpu_window& in) noexcept {
    const off_cpu_time found = cpu_.read(p.cpu, watch, in);
    if (found.off_ns == 0 || !state_.drops_when_full() || !p.attached) return found;
    if (p.ring->used() < std::uint64_t{p.ring->capacity} * 3 / 4) return found;
    drop(p);
    return {};
  }

  // --- Functions whose caller holds the producer's guard.

  int drain(producer& p) noexcept {
    const int error = rings_.drain(p);
    open_lanes(p);
    return error;
  }

  /// Lets the owning thread store records, without calling the session, until the ring is full; if
  /// full rings drop records, until the ring is half full.
  void open_lanes(producer& p) const noexcept {
    const commit_point& c = p.ring->committed();
    const bool on = state_.is_on();
    const bool open = on && !state_.writes_through() && !p.ring_file_deleted;
    gate_of(p).interrupt_limit.store(on ? c.tail[1] + interrupt_lane_records : 0,
                                     std::memory_order_release);
    const std::uint64_t room = p.ring->capacity;
    gate_of(p).last_limit.store(c.tail[0] + room, std::memory_order_release);
    gate_of(p).limit.store(!open ? 0 : c.tail[0] + (state_.drops_when_full() ? room / 2 : room),
                           std::memory_order_release);
  }

  /// Makes the owning thread take the slow path for its next record.
  static void close_lanes(producer& p) noexcept {
    gate_of(p).limit.store(0, std::memory_order_relaxed);
    gate_of(p).interrupt_limit.store(0, std::memory_order_relaxed);
  }

 private:
  static void drop(producer& p) noexcept { p.dropped.fetch_add(1, std::memory_order_relaxed); }
  LOTUS_DETAIL_COLD void drop_nested(producer& p) noexcept {
    drop(p);
    if (said_nested_.exchange(true)) return;
    say("records of signal handlers are dropped, because too many interrupted the storing of a "
        "record, or one left it by siglongjmp and the stack does not show that");
  }
  static bool lose(producer& p) noexcept {
    drop(p);
    return false;
  }

  LOTUS_DETAIL_COLD bool attach(producer& p) noexcept {
    if (!rings_.attach(p)) return false;
    open_lanes(p);
    if (!drains_.runs()) drains_.wake();
    return true;
  }

  bool set_aside(producer& p) noexcept {
    if (!rings_.set_aside(p)) return false;
    open_lanes(p);
    return true;
  }

  bool make_room(producer& p) noexcept {
    if (!empty_ring(p)) return false;
    if (rings_.replace_small_ring(p)) open_lanes(p);
    return true;
  }

  /// Writes the records of a full ring to the logs, or moves them to the backlog if they cannot be
  /// written. With the option full_ring::drop, the thread must not wait for the disk: always moves
  /// the records to the backlog. If the memory limit is reached then, drops the oldest records in
  /// the backlog.
  bool empty_ring(producer& p) noexcept {
    if (!state_.drops_when_full()) {
      if (rings_.is_disk_full()) return set_aside(p);
      p.drained_itself.store(true, std::memory_order_relaxed);
      return drain(p) == 0 || set_aside(p);
    }
    while (!set_aside(p)) {
      if (p.backlog_first == nullptr) return false;
      p.dropped.fetch_add(rings_.drop_oldest(p), std::memory_order_relaxed);
    }
    return true;
  }

  /// Stores a record without ever waiting for the disk. If the ring is half full, wakes the drain
  /// thread. If the ring is full, moves its records to the backlog, and drops the oldest ones
  /// there if the memory limit is reached. Returns false if the record was not stored, for example
  /// because the drain thread is writing the ring's records.
  bool push_or_drop(producer& p, const record& r) noexcept {
    std::uint64_t limit = gate_of(p).limit.load(std::memory_order_acquire);
    const std::uint64_t last_limit = gate_of(p).last_limit.load(std::memory_order_acquire);
    if (limit == 0) return false;
    if (limit < last_limit && p.published->load(std::memory_order_relaxed) < last_limit) {
      gate_of(p).limit.compare_exchange_strong(limit, last_limit);
      drains_.wake();
      detail::push(r.begin_ticks, r.end_ticks, r.tag);
      return true;
    }
    const signals_blocked quiet;
    if (!p.guard.try_lock()) return false;
    const bool stored = state_.is_on() && p.attached && (!p.ring->full() || make_room(p));
    if (stored) p.ring->append(r);
    p.guard.unlock();
    return stored;
  }

  const recording_state& state_;
  storage& rings_;
  aggregate_store& aggregates_;
  cpu_clock& cpu_;
  background_thread& drains_;
  std::atomic<bool> said_nested_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_SLOW_PATH_HPP
