// How a thread stores records in its ring, and how it notices that it was off the CPU.
#ifndef LOTUS_RECORD_THREAD_RING_HPP
#define LOTUS_RECORD_THREAD_RING_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lotus/base/stack_pointer.hpp"
#include "lotus/base/ticks.hpp"
#include "lotus/config.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/record.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

struct aggregates_block;

// A thread checks with one load and a compare whether it may have been off the CPU since the last
// check. The kernel clears a pointer in the thread's rseq area when it switches the thread out:
// while the pointer still has the value that we stored, wall time was CPU time, and no clock must
// be read.

LOTUS_DETAIL_PER_MODULE inline constexpr std::uint64_t never_looked = 0;

/// What a thread checks, in one shared object. The session sets it up: store/cpu_clock.hpp.
struct cpu_watch {
  const std::uint64_t* word = &never_looked;  ///< changes when the thread is switched out
  std::uint64_t undisturbed = 1;              ///< the word's value until then
  bool per_batch = false;  ///< there is no such word: the clocks are read at the ends of batches

  // An aggregated call marks the watch, so that the next begin or end of a span reads the clocks
  // too. If the word is this thread's own, the mark is another value of the word, which all shared
  // objects see; otherwise only this object's watch is marked.
  bool own_word = false;
  std::uint64_t armed = never_looked;  ///< the word's value while this is not marked
  std::uint64_t marked = 0;            ///< the word's value while it is marked; without an own
                                       ///< word: `armed` before marking

  LOTUS_DETAIL_ALWAYS_INLINE bool may_be_marked() const noexcept {
    return __atomic_load_n(word, __ATOMIC_RELAXED) == armed;
  }
  /// A switch between the check and the store goes unnoticed until the next switch.
  void mark() noexcept {
    if (!may_be_marked()) return;
    if (own_word) {
      __atomic_store_n(const_cast<std::uint64_t*>(word), marked, __ATOMIC_RELAXED);
    } else {
      marked = armed;
      armed = undisturbed = never_held;
    }
  }
  /// Removes the mark. Returns whether the watch was marked and the thread was not switched out.
  bool unmark() noexcept {
    if (own_word) {
      if (__atomic_load_n(word, __ATOMIC_RELAXED) != marked) return false;
      __atomic_store_n(const_cast<std::uint64_t*>(word), armed, __ATOMIC_RELAXED);
      return true;
    }
    if (armed != never_held) return false;
    armed = undisturbed = marked;
    return !per_batch && may_be_marked();
  }

  static constexpr std::uint64_t never_held = ~std::uint64_t{0};
};

LOTUS_DETAIL_PER_MODULE inline thread_local cpu_watch this_cpu_watch;

/// How a running thread accesses its ring; record/thread.hpp has what the session adds to it.
struct alignas(64) thread_ring {
  // For the owning thread; the session changes them only while the owner cannot be storing.
  record* slots = nullptr;
  std::uint64_t mask = 0;
  std::atomic<std::uint64_t>* published = &none_published;
  /// While a record is being stored: the stack pointer; else 0. The second one is the same for a
  /// signal handler that stores a record meanwhile. Its value distinguishes a handler that
  /// interrupted the storing from code that runs after a handler left it for good by siglongjmp;
  /// see base/interruption.hpp.
  std::atomic<std::uintptr_t> storing{0};
  std::atomic<std::uintptr_t> storing_nested{0};
  std::uint32_t loader = 0;  ///< the thread's loader: id of its name, 0 for the default one; the
                             ///< session writes it under `guard`

  alignas(64) std::atomic<std::uint64_t> dropped{0};
  std::atomic<bool> drained_itself{false};  ///< since the drain thread's last visit
  /// Used instead of a ring's counter before there is a ring.
  std::atomic<std::uint64_t> none_published{0};
  std::atomic<std::uint64_t> longest_wait_ticks{0};  ///< since the drain thread's last visit
};

/// Allows a thread to store records without the session. It is not in thread_ring but in memory
/// that the kernel clears in every child: a child that was created without fork handlers (_Fork,
/// clone) shares its parent's ring file and must not write to it. The child finds only zeros here,
/// takes the slow path, and the session notices. After a fork with handlers the session fills it
/// again.
struct alignas(64) ring_gate {
  /// Positions below it are free. 0 sends all records to the slow path. Written under `guard`.
  std::atomic<std::uint64_t> limit{0};
  /// If records may be dropped, `limit` is raised to this value after the drain thread was woken.
  std::atomic<std::uint64_t> last_limit{0};
  std::atomic<std::uint64_t> interrupt_limit{0};
  std::atomic<std::uint64_t>* waiting_since = nullptr;  ///< where the ring publishes a wait
  /// The thread's first block of aggregates; null sends all calls to the slow path. Written under
  /// `guard`.
  std::atomic<aggregates_block*> aggregates{nullptr};
};

/// Distance from a thread_ring to its gate. It is whole pages for all page sizes of Linux on the
/// supported processors, and a compile-time constant, so that finding the gate costs the hot path
/// nothing.
inline constexpr std::size_t gate_distance = std::size_t{64} << 10;

LOTUS_DETAIL_ALWAYS_INLINE ring_gate& gate_of(thread_ring& ring) noexcept {
  return *reinterpret_cast<ring_gate*>(reinterpret_cast<char*>(&ring) + gate_distance);
}

LOTUS_DETAIL_PER_MODULE inline thread_local thread_ring* this_ring = nullptr;

/// Returns CLOCK_MONOTONIC in ns, for systems whose hardware counter cannot be used.
LOTUS_DETAIL_RARE std::uint64_t monotonic_ticks() noexcept;

/// Returns the session's clock ticks: the hardware counter, or ns of CLOCK_MONOTONIC.
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t now_ticks() noexcept {
  const bool hardware = this_module.hardware_clock.load(std::memory_order_relaxed);
  return LOTUS_DETAIL_LIKELY(hardware) ? hardware_ticks() : monotonic_ticks();
}

/// Stores a thread's first record.
LOTUS_DETAIL_RARE void push_first(const record& r) noexcept;
/// Called if the ring is full, or if a handler interrupted the storing of a record.
LOTUS_DETAIL_RARE void push_rarely(thread_ring& ring, const record& r) noexcept;

/// Appends a record to this thread's ring. If the ring is full, drains it first, so that nothing is
/// lost. Once this returns, every reader sees the complete record, even after a kill.
/// Errors: none thrown. Thread and signal safety: all. Cost: bench/scope_bench.cpp.
LOTUS_DETAIL_ALWAYS_INLINE void push(std::uint64_t begin_ticks, std::uint64_t end_ticks,
                                     record_tag tag) noexcept {
  thread_ring* const p = this_ring;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) return push_first({begin_ticks, end_ticks, tag});
  if (LOTUS_DETAIL_UNLIKELY(p->storing.load(std::memory_order_relaxed) != 0)) {
    return push_rarely(*p, {begin_ticks, end_ticks, tag});
  }
  // A handler that runs between these two stores sees `storing` and uses its own lane; a handler
  // that ran before the first one has restored everything.
  p->storing.store(stack_pointer(), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint64_t at = p->published->load(std::memory_order_relaxed);
  if (LOTUS_DETAIL_UNLIKELY(at >= gate_of(*p).limit.load(std::memory_order_acquire))) {
    p->storing.store(0, std::memory_order_relaxed);
    return push_rarely(*p, {begin_ticks, end_ticks, tag});
  }
  p->slots[at & p->mask] = {begin_ticks, end_ticks, tag};
  p->published->store(at + 1, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  p->storing.store(0, std::memory_order_relaxed);
}

/// Reads the clocks, and records the time off the CPU that they show, with the time `ticks`.
LOTUS_DETAIL_RARE void read_cpu(std::uint64_t ticks) noexcept;

/// Call it before reading the clock when an operation begins, and after reading it when one ends.
/// @param ticks  std::uint64_t(): returns the time before which the time off the CPU lies.
template <class Ticks>
LOTUS_DETAIL_ALWAYS_INLINE void look_at_cpu(Ticks ticks) noexcept {
  const cpu_watch& watch = this_cpu_watch;
  const std::uint64_t now = __atomic_load_n(watch.word, __ATOMIC_RELAXED);
  if (LOTUS_DETAIL_UNLIKELY(now != watch.undisturbed)) read_cpu(ticks());
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_THREAD_RING_HPP
