// Records how much heap memory operations allocate and free, as counted by liblotus_memory.so.
#ifndef LOTUS_HEAP_HEAP_ACCOUNT_HPP
#define LOTUS_HEAP_HEAP_ACCOUNT_HPP

#include <dlfcn.h>
#include <stdlib.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "lotus/base/clock.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/format/record_kinds.hpp"
#include "lotus/heap/heap_hook.hpp"
#include "lotus/record/message.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns the interface of liblotus_memory.so; null if the program was started without that
/// library. Looks for the library only if LD_PRELOAD is set, because the lookup may allocate. Call
/// this function without holding a lock.
LOTUS_DETAIL_PER_MODULE inline const heap_hook* find_heap_hook() noexcept {
  const char* const preloaded = secure_getenv("LD_PRELOAD");
  if (preloaded == nullptr || *preloaded == '\0') return nullptr;
  const auto* const hook = static_cast<const heap_hook*>(dlsym(RTLD_DEFAULT, heap_hook_symbol));
  if (hook == nullptr) return nullptr;
  if (hook->version != heap_hook_version || hook->bytes != sizeof(heap_hook)) {
    say("the preloaded liblotus_memory.so is of another version of lotus: memory is not counted");
    return nullptr;
  }
  return hook;
}

/// Records the counts of liblotus_memory.so. All functions are thread-safe, but call
/// begin_recording() and begin_where_missed() only while the session's control lock is held.
class heap_account {
 public:
  /// Looks for liblotus_memory.so. Call this function before taking any lock.
  void find() noexcept { hook_.get_at_once(find_heap_hook, nullptr); }

  bool on() const noexcept { return hook() != nullptr; }

  /// Prepares for a new recording: forgets operations that began during the previous recording and
  /// have not ended. The state of the heap is recorded later, by the first operation, because
  /// recording it needs a lock that the caller of this function already holds.
  void begin_recording() noexcept {
    const heap_hook* const counts = hook();
    begun_ = counts != nullptr;
    if (!begun_) return;
    counts->forget();
    if (!blind_reported_.exchange(true)) {
      char text[512];
      counts->blind_to(text, sizeof(text));
      if (text[0] != '\0') say("memory: %s", text);
    }
    heap_reported_.store(false, std::memory_order_relaxed);
  }

  /// Calls begin_recording() if the current recording began before find() had found
  /// liblotus_memory.so.
  void begin_where_missed() noexcept {
    if (!begun_) begin_recording();
  }

  /// Records the size of the heap, and how much of it each operation has allocated. Must be called
  /// before the recording ends.
  /// @param unit  id of the name to record if no unit (batch, or outermost operation) has begun
  /// yet.
  void end_recording(std::uint32_t unit) const noexcept {
    if (const heap_hook* const counts = hook()) {
      report_heap(*counts, unit);
      report_held(*counts, unit);
    }
  }

  /// Returns the id of the name to which allocations are attributed during a span with this tag. If
  /// spans of its kind have no name, as when a batch is built, the kind has a fixed name.
  /// @param intern  function that returns the id of a name.
  template <class Intern>
  std::uint32_t name(record_tag tag, Intern&& intern) noexcept {
    const record_kind& kind = kind_of(tag);
    if (has_name(kind)) return name_of(kind, tag);
    std::atomic<std::uint32_t>& known = kind_names_[static_cast<std::uint8_t>(kind.kind)];
    std::uint32_t id = known.load(std::memory_order_relaxed);
    if (id != 0 && id != unnamed_id) return id;
    id = intern(kind.task());
    known.store(id, std::memory_order_relaxed);
    return id;
  }

  void begin(std::uint32_t name, bool is_batch) noexcept {
    const heap_hook* const counts = hook();
    if (counts == nullptr) return;
    if (!heap_reported_.load(std::memory_order_relaxed) && !heap_reported_.exchange(true)) {
      report_heap(*counts, name);
    }
    counts->enter(name, is_batch);
  }

  /// Ends an operation of this thread and records its allocations.
  /// @param begin_ticks  start of the operation's record; 0 if the operation is not recorded.
  /// @param begun_as     id of the name with which the operation began.
  void end(std::uint64_t begin_ticks, std::uint32_t begun_as, std::uint32_t name) noexcept {
    const heap_hook* const counts = hook();
    heap_change change;
    const int counted = counts == nullptr ? 0 : counts->leave(begun_as, change);
    if (counted == 0 || begin_ticks == 0) return;
    tell(event_kind::allocated, begin_ticks, name, change.allocated_bytes, change.allocated_calls);
    tell(event_kind::freed, begin_ticks, name, change.freed_bytes, change.freed_calls);
    tell(event_kind::retained, begin_ticks, name, change.retained_bytes, change.retained_blocks);
    tell(event_kind::heap_peak, begin_ticks, name, change.peak_bytes, 0);
    if (counted == 2) end_unit(*counts, begun_as);
  }

  /// Called in a forked child, where liblotus_memory.so counts units from 0 again: resets the
  /// number of units after which the held memory is recorded next.
  void become_child() noexcept { next_held_.store(first_held, std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t first_held = 16;
  static constexpr std::int64_t between_heaps_ns = 1'000'000;

  const heap_hook* hook() const noexcept { return hook_.known(nullptr); }

  static std::uint32_t to_32_bits(std::uint64_t number) noexcept {
    return number < UINT32_MAX ? static_cast<std::uint32_t>(number) : UINT32_MAX;
  }

  static void tell(event_kind kind, std::uint64_t ticks, std::uint32_t name, std::uint64_t bytes,
                   std::uint64_t number) noexcept {
    if (bytes == 0 && number == 0) return;
    push(ticks, bytes, {kind, name, to_32_bits(number)});
  }

  static void report_heap(const heap_hook& counts, std::uint32_t unit) noexcept {
    heap_sums sums;
    counts.sum(sums);
    const std::uint64_t ticks = now_ticks();
    const std::uint32_t name = sums.unit_name != 0 ? sums.unit_name : unit;
    push(ticks, sums.held_bytes < 0 ? 0 : static_cast<std::uint64_t>(sums.held_bytes),
         {event_kind::heap, name, to_32_bits(sums.units)});
  }

  LOTUS_DETAIL_COLD static void report_held(const heap_hook& counts, std::uint32_t unit) noexcept {
    heap_sums sums;
    counts.sum(sums);
    std::uint64_t ticks = now_ticks();
    const std::uint32_t name = sums.unit_name != 0 ? sums.unit_name : unit;
    push(ticks, sums.allocated_bytes, {event_kind::heap_total, name, 0});
    push(ticks, sums.allocated_calls, {event_kind::heap_total, name, 1});
    counts.held(
        [](void* at, std::uint32_t of, std::uint64_t first_unit, std::uint64_t bytes) noexcept {
          tell(event_kind::held, *static_cast<std::uint64_t*>(at), of, bytes, first_unit);
        },
        &ticks);
  }

  /// Called when a unit (batch, or outermost operation) has ended. Records the size of the heap, at
  /// most a thousand times per second. How much of the heap each operation has allocated is
  /// recorded at increasing intervals, because these records need much space.
  void end_unit(const heap_hook& counts, std::uint32_t unit) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    std::int64_t last_ns = heap_reported_ns_.load(std::memory_order_relaxed);
    if (now_ns - last_ns >= between_heaps_ns &&
        heap_reported_ns_.compare_exchange_strong(last_ns, now_ns, std::memory_order_relaxed)) {
      report_heap(counts, unit);
    }
    const std::uint64_t units = counts.units();
    std::uint64_t next = next_held_.load(std::memory_order_relaxed);
    if (units >= next &&
        next_held_.compare_exchange_strong(next, units + units / 4, std::memory_order_relaxed)) {
      report_heap(counts, unit);
      report_held(counts, unit);
    }
  }

  lazy_lookup<const heap_hook*> hook_;
  /// Whether begin_recording() has run after liblotus_memory.so was found; protected by the
  /// session's control lock.
  bool begun_ = false;
  /// For kinds whose records have no name of their own: the id of the fixed name of the kind (see
  /// name()); 0: not determined yet.
  std::atomic<std::uint32_t> kind_names_[record_kinds.size()]{};
  std::atomic<bool> blind_reported_{false};
  std::atomic<bool> heap_reported_{false};
  std::atomic<std::int64_t> heap_reported_ns_{0};
  std::atomic<std::uint64_t> next_held_{first_held};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_HEAP_HEAP_ACCOUNT_HPP
