// Stores records in a thread's ring, and notices when the thread was off the CPU.
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

// A thread records how long it was off the CPU. It needs only one load and one comparison to find
// out whether it may have been off the CPU since the last check. The kernel clears a pointer in the
// thread's rseq area (restartable sequences, rseq(2)) when it switches the thread out. While the
// pointer still has the value that lotus stored, the thread has not been off the CPU, and no clock
// needs to be read.

LOTUS_DETAIL_PER_MODULE inline constexpr std::uint64_t never_looked = 0;

/// The word that a shared object checks to find out whether the current thread was off the CPU.
/// store/cpu_clock.hpp sets it up.
struct cpu_watch {
  /// The word to check; its value changes when the thread is switched out.
  const std::uint64_t* word = &never_looked;
  std::uint64_t undisturbed = 1;  ///< look_at_cpu() calls read_cpu() if the word has another value
  /// Whether the clocks are read once per batch, because no word shows reliably when the thread is
  /// switched out.
  bool per_batch = false;

  // An aggregated call marks the watch, so that the next begin or end of a span calls read_cpu(),
  // which records the time of the aggregated calls. With own_word, the word is in the thread's rseq
  // area, and marking sets it to a second value, which all shared objects see. Otherwise marking
  // changes only this shared object's watch.
  bool own_word = false;
  std::uint64_t armed = never_looked;  ///< value of the word while the watch is not marked
  /// With own_word: value of the word while the watch is marked. Otherwise: the previous value of
  /// `armed`, which unmark() restores.
  std::uint64_t marked = 0;

  LOTUS_DETAIL_ALWAYS_INLINE bool may_be_marked() const noexcept {
    return __atomic_load_n(word, __ATOMIC_RELAXED) == armed;
  }
  /// Marks the watch. With own_word, if the thread is switched out between the check and the store,
  /// the store overwrites the value that the kernel wrote. The time of this switch is then recorded
  /// together with that of the next one.
  void mark() noexcept {
    if (!may_be_marked()) return;
    if (own_word) {
      __atomic_store_n(const_cast<std::uint64_t*>(word), marked, __ATOMIC_RELAXED);
    } else {
      marked = armed;
      armed = undisturbed = never_held;
    }
  }
  /// Removes the mark. Returns true if the watch was marked and `word` shows that the thread has
  /// not been switched out since then, so that the caller need not read the clocks.
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

/// The part of a thread's state that it needs to store records. struct producer (record/thread.hpp)
/// adds the part that the session uses.
struct alignas(64) thread_ring {
  // The owning thread uses these members. The session changes them only while that thread cannot
  // store records.
  record* slots = nullptr;
  std::uint64_t mask = 0;
  std::atomic<std::uint64_t>* published = &none_published;
  /// Stack pointer of the thread while it stores a record, otherwise 0. storing_nested is the same
  /// for a signal handler that interrupts the storing. Code that finds `storing` set passes the
  /// value to is_interrupted() (base/interruption.hpp), because there are two cases: the code is
  /// such a handler, or an earlier handler exited by siglongjmp and the storing never continues.
  std::atomic<std::uintptr_t> storing{0};
  std::atomic<std::uintptr_t> storing_nested{0};
  /// Id of the thread's loader; 0: the default loader. Written while producer::guard is held.
  std::uint32_t loader = 0;

  alignas(64) std::atomic<std::uint64_t> dropped{0};
  /// Whether the thread itself has drained its ring since the drain thread's last round.
  std::atomic<bool> drained_itself{false};
  /// The counter to which `published` points until the thread has a ring.
  std::atomic<std::uint64_t> none_published{0};
  /// Longest wait for a batch since the drain thread's last round.
  std::atomic<std::uint64_t> longest_wait_ticks{0};
};

/// Limits up to which a thread may store records without calling the session. The gate is not in
/// thread_ring, but in memory that the kernel clears in every child process. A child that was
/// created without fork handlers (_Fork, clone) shares the ring file of its parent and must not
/// write to it. In such a child the gate contains zeros, so the thread takes the slow path, and the
/// session detects that it runs in a child. After a fork with handlers the session sets the gate
/// again.
struct alignas(64) ring_gate {
  /// The thread may store records at positions below this limit. 0 sends all records to the slow
  /// path. Written while producer::guard is held.
  std::atomic<std::uint64_t> limit{0};
  /// The position at which the ring is full. If full rings drop records, `limit` is at first the
  /// position at which the ring is half full; when the thread has filled that half, it wakes the
  /// drain thread and sets `limit` to last_limit. See slow_path::push_or_drop().
  std::atomic<std::uint64_t> last_limit{0};
  /// The limit for the records that signal handlers store in the interrupt lane; see `limit`.
  std::atomic<std::uint64_t> interrupt_limit{0};
  /// Where the thread publishes since when it has been waiting for a batch.
  std::atomic<std::uint64_t>* waiting_since = nullptr;
  /// The thread's first block of aggregates. Null sends all aggregated calls to the slow path.
  /// Written while producer::guard is held.
  std::atomic<aggregates_block*> aggregates{nullptr};
};

/// Distance in bytes from a thread_ring to its gate: a multiple of every page size of Linux on the
/// supported processors. Because it is a constant, no pointer to the gate must be loaded.
inline constexpr std::size_t gate_distance = std::size_t{64} << 10;

LOTUS_DETAIL_ALWAYS_INLINE ring_gate& gate_of(thread_ring& ring) noexcept {
  return *reinterpret_cast<ring_gate*>(reinterpret_cast<char*>(&ring) + gate_distance);
}

LOTUS_DETAIL_PER_MODULE inline thread_local thread_ring* this_ring = nullptr;

/// Returns CLOCK_MONOTONIC in ns; used on systems whose hardware counter cannot serve as a clock.
LOTUS_DETAIL_RARE std::uint64_t monotonic_ticks() noexcept;

/// Returns the time in the session's ticks: the hardware counter, or ns of CLOCK_MONOTONIC.
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t now_ticks() noexcept {
  const bool hardware = this_module.hardware_clock.load(std::memory_order_relaxed);
  return LOTUS_DETAIL_LIKELY(hardware) ? hardware_ticks() : monotonic_ticks();
}

/// Stores the first record of a thread, which has no ring yet.
LOTUS_DETAIL_RARE void push_first(const record& r) noexcept;
/// Stores a record if the ring is full, or if a signal handler interrupted the storing of a record.
LOTUS_DETAIL_RARE void push_slow(thread_ring& ring, const record& r) noexcept;

/// Appends a record to this thread's ring. If the ring is full, it is drained first, so that no
/// record is lost. Afterwards every reader sees the complete record, even if the process is killed.
/// Errors: none thrown. Thread and signal safety: any thread and signal handler. Cost: see
/// bench/scope_bench.cpp.
LOTUS_DETAIL_ALWAYS_INLINE void push(std::uint64_t begin_ticks, std::uint64_t end_ticks,
                                     record_tag tag) noexcept {
  thread_ring* const p = this_ring;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) return push_first({begin_ticks, end_ticks, tag});
  if (LOTUS_DETAIL_UNLIKELY(p->storing.load(std::memory_order_relaxed) != 0)) {
    return push_slow(*p, {begin_ticks, end_ticks, tag});
  }
  // A signal handler that runs between the first and the last store to `storing` sees a value other
  // than 0, and stores its records in the interrupt lane. A handler that ran before the first store
  // has already returned.
  p->storing.store(stack_pointer(), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint64_t at = p->published->load(std::memory_order_relaxed);
  if (LOTUS_DETAIL_UNLIKELY(at >= gate_of(*p).limit.load(std::memory_order_acquire))) {
    p->storing.store(0, std::memory_order_relaxed);
    return push_slow(*p, {begin_ticks, end_ticks, tag});
  }
  p->slots[at & p->mask] = {begin_ticks, end_ticks, tag};
  p->published->store(at + 1, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  p->storing.store(0, std::memory_order_relaxed);
}

/// Reads the thread's CPU clocks, and records how long the thread was off the CPU before the time
/// `ticks`; 0: before now.
/// @param begin_ticks  start of the span that ends now; 0 if none ends.
LOTUS_DETAIL_RARE void read_cpu(std::uint64_t ticks, std::uint64_t begin_ticks) noexcept;

/// If the thread may have been off the CPU since the last check, records for how long. At an
/// operation's begin, call this function before reading the clock; at its end, after reading the
/// clock.
/// @param ticks  the time at which the recorded time off the CPU ends; 0: now.
/// @param begin_ticks  start of the span that ends now; 0 if none ends.
LOTUS_DETAIL_ALWAYS_INLINE void look_at_cpu(std::uint64_t ticks = 0,
                                            std::uint64_t begin_ticks = 0) noexcept {
  const cpu_watch& watch = this_cpu_watch;
  const std::uint64_t now = __atomic_load_n(watch.word, __ATOMIC_RELAXED);
  if (LOTUS_DETAIL_UNLIKELY(now != watch.undisturbed)) read_cpu(ticks, begin_ticks);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_THREAD_RING_HPP
