// What a thread records with: its way into its ring, and its look at whether it was off the CPU.
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

// Whether a thread may have been off the CPU since it last looked is one load and a compare. The
// kernel clears the pointer of its rseq area when it switches the thread out; so while that still
// points to where we let it point, wall time was CPU time, and no clock need be read.

LOTUS_DETAIL_PER_MODULE inline constexpr std::uint64_t never_looked = 0;

/// What one thread looks at, in one shared object. The session sets it: store/cpu_clock.hpp.
struct cpu_watch {
  const std::uint64_t* word = &never_looked;  ///< that changes when the thread is switched out
  std::uint64_t undisturbed = 1;              ///< what it holds until then
  bool per_batch = false;  ///< there is no such word: the clocks are read at the ends of batches

  // A call that is aggregated lets the next begin or end of a span look too. Where the word is the
  // thread's own it gets another value, which all shared objects see; else this one's watch does.
  bool own_word = false;
  std::uint64_t armed = never_looked;  ///< what the word holds while this is not marked
  std::uint64_t marked = 0;            ///< what it holds while it is; of no own word, `armed` then

  LOTUS_DETAIL_ALWAYS_INLINE bool may_be_marked() const noexcept {
    return __atomic_load_n(word, __ATOMIC_RELAXED) == armed;
  }
  /// A switch that comes between the two lines is found at the next one.
  void mark() noexcept {
    if (!may_be_marked()) return;
    if (own_word) {
      __atomic_store_n(const_cast<std::uint64_t*>(word), marked, __ATOMIC_RELAXED);
    } else {
      marked = armed;
      armed = undisturbed = never_held;
    }
  }
  /// Whether it was marked, and nothing else has happened.
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

/// One living thread's way into its ring; record/thread.hpp has what the session needs of it.
struct alignas(64) thread_ring {
  // For the owning thread; the session changes them only where the owner cannot be storing.
  record* slots = nullptr;
  std::uint64_t mask = 0;
  std::atomic<std::uint64_t>* published = &none_published;
  /// While a record is stored, where the stack is; else 0. Then likewise for a handler that stores
  /// one meanwhile. What stands there tells a handler that interrupted this from code that runs
  /// after a handler has left it for good, by siglongjmp: base/interruption.hpp.
  std::atomic<std::uintptr_t> storing{0};
  std::atomic<std::uintptr_t> storing_nested{0};
  std::uint32_t loader = 0;  ///< that the thread is in: the id of its name, 0 the default one; the
                             ///< session writes it under `guard`

  alignas(64) std::atomic<std::uint64_t> dropped{0};
  std::atomic<bool> drained_itself{false};  ///< since the drain thread last came by
  /// Stands in for a ring's counter before there is one.
  std::atomic<std::uint64_t> none_published{0};
  std::atomic<std::uint64_t> longest_wait_ticks{0};  ///< since the drain thread last came by
};

/// What lets a thread store on its own. Not in its thread_ring but in memory that the kernel clears
/// in every child: a child that was made without fork handlers (_Fork, clone) shares its parent's
/// ring file and must not store into it. So it finds this all zero, takes the slow way, and the
/// session notices. After a fork with handlers the session fills it again.
struct alignas(64) ring_gate {
  /// Positions below it are free. 0 sends every record the slow way. Written under `guard`.
  std::atomic<std::uint64_t> limit{0};
  /// Where records are dropped, `limit` goes on to this one when the drain thread has been woken.
  std::atomic<std::uint64_t> last_limit{0};
  std::atomic<std::uint64_t> interrupt_limit{0};
  std::atomic<std::uint64_t>* waiting_since = nullptr;  ///< where the ring tells of a wait
  /// The thread's first block of aggregates; null sends every call the slow way. Written under
  /// `guard`.
  std::atomic<aggregates_block*> aggregates{nullptr};
};

/// A gate is so far behind its thread_ring. Whole pages, of any size that Linux has on a supported
/// processor, and known when compiled: so finding it costs the hot path nothing.
inline constexpr std::size_t gate_distance = std::size_t{64} << 10;

LOTUS_DETAIL_ALWAYS_INLINE ring_gate& gate_of(thread_ring& ring) noexcept {
  return *reinterpret_cast<ring_gate*>(reinterpret_cast<char*>(&ring) + gate_distance);
}

LOTUS_DETAIL_PER_MODULE inline thread_local thread_ring* this_ring = nullptr;

/// CLOCK_MONOTONIC in ns, where the processor's counter is of no use.
LOTUS_DETAIL_RARE std::uint64_t monotonic_ticks() noexcept;

/// Clock ticks as the session counts them: of the hardware counter, or ns of CLOCK_MONOTONIC.
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t now_ticks() noexcept {
  const bool hardware = this_module.hardware_clock.load(std::memory_order_relaxed);
  return LOTUS_DETAIL_LIKELY(hardware) ? hardware_ticks() : monotonic_ticks();
}

/// A thread's first record.
LOTUS_DETAIL_RARE void push_first(const record& r) noexcept;
/// Where the ring is full, or a handler interrupted the storing of a record.
LOTUS_DETAIL_RARE void push_rarely(thread_ring& ring, const record& r) noexcept;

/// Appends one record to this thread's ring; when the ring is full it drains first, so nothing is
/// lost. The record is complete for every reader, also after a kill, once this returns.
/// Errors: none thrown. Thread and signal safety: all. Cost: bench/scope_bench.cpp.
LOTUS_DETAIL_ALWAYS_INLINE void push(std::uint64_t begin_ticks, std::uint64_t end_ticks,
                                     record_tag tag) noexcept {
  thread_ring* const p = this_ring;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) return push_first({begin_ticks, end_ticks, tag});
  if (LOTUS_DETAIL_UNLIKELY(p->storing.load(std::memory_order_relaxed) != 0)) {
    return push_rarely(*p, {begin_ticks, end_ticks, tag});
  }
  // A handler that runs between these two stores sees `storing` and keeps to its own lane; one that
  // ran before has put everything back as it was.
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

/// Reads the clocks, and records what was found as known at `ticks`.
LOTUS_DETAIL_RARE void read_cpu(std::uint64_t ticks) noexcept;

/// Call it where an operation begins, before its clock is read, and where it ends, behind.
/// @param ticks  std::uint64_t(): the time that what is found belongs before.
template <class Ticks>
LOTUS_DETAIL_ALWAYS_INLINE void look_at_cpu(Ticks ticks) noexcept {
  const cpu_watch& watch = this_cpu_watch;
  const std::uint64_t now = __atomic_load_n(watch.word, __ATOMIC_RELAXED);
  if (LOTUS_DETAIL_UNLIKELY(now != watch.undisturbed)) read_cpu(ticks());
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_THREAD_RING_HPP
