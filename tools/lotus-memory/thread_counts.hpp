// Provides the allocation counts of one thread and its stack of open operations.
#ifndef LOTUS_MEMORY_THREAD_COUNTS_HPP
#define LOTUS_MEMORY_THREAD_COUNTS_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "block_tag.hpp"
#include "generations.hpp"
#include "lotus/heap/heap_hook.hpp"

namespace lotus::memory {

/// A number that only one thread changes and that all threads may read. This needs no lock and no
/// atomic read-modify-write instruction, which would be slower.
template <class Number>
class counted {
 public:
  Number get() const noexcept { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }
  void set(Number value) noexcept { __atomic_store_n(&value_, value, __ATOMIC_RELAXED); }
  void add(Number more) noexcept { set(get() + more); }

 private:
  Number value_ = 0;
};

/// An operation that has begun and has not ended yet.
struct open_operation {
  std::uint64_t owner_around;
  // The values of the thread's counts when the operation began.
  std::uint64_t allocated_bytes;
  std::uint64_t allocated_calls;
  std::uint64_t freed_bytes;
  std::uint64_t freed_calls;
  std::int64_t peak;
  // Sums over freed blocks that were allocated in this operation or in operations inside it.
  std::uint64_t own_freed_bytes;
  std::uint64_t own_freed_calls;
  std::uint32_t number;
  std::uint32_t name;
  bool is_unit;
};

/// The counts and open operations of one thread. Objects are never freed: when a thread has ended,
/// a new thread continues to use its object and its counts. All members are 0 at first. Thread
/// safety: only the owning thread may access it, except for members of type `counted`.
struct alignas(64) thread_counts {
  static constexpr std::uint32_t max_open = 64;

  counted<std::uint64_t> allocated_bytes;
  counted<std::uint64_t> allocated_calls;
  counted<std::uint64_t> freed_bytes;
  counted<std::uint64_t> freed_calls;
  counted<std::int64_t> peak;  // maximum of live() since the innermost operation began
  std::uint64_t owner;         // value of block_tag::owner for new blocks
  std::uint32_t open;          // number of open operations
  std::uint32_t too_deep;      // number of open operations that did not fit into `stack`
  std::uint32_t operations;    // number of operations that have begun
  std::uint32_t recording;     // number of the recording to which the open operations belong
  // Number of the thread, 1 to 65,535; 0: shared by threads without counts of their own.
  std::uint32_t number;
  thread_counts* next;
  std::atomic<bool> in_use;
  open_operation stack[max_open];
  // For each slot (see class generations): bytes that this thread allocated minus bytes it freed.
  counted<std::int64_t> held[slots];

  std::int64_t live() const noexcept {
    return static_cast<std::int64_t>(allocated_bytes.get() - freed_bytes.get());
  }

  void allocated(std::size_t bytes) noexcept {
    allocated_bytes.add(bytes);
    allocated_calls.add(1);
    held[owner >> 48U].add(static_cast<std::int64_t>(bytes));
    if (const std::int64_t now = live(); now > peak.get()) peak.set(now);
  }

  void freed(const block_tag& tag) noexcept {
    const std::size_t bytes = tag.size();
    freed_bytes.add(bytes);
    freed_calls.add(1);
    held[tag.slot()].add(-static_cast<std::int64_t>(bytes));
    if (open == 0 || tag.thread() != number) return;
    // Find the open operation in which the block was allocated. The numbers of operations increase,
    // so it is the innermost one whose number is not larger than the number in the block's tag.
    for (std::uint32_t i = open; i-- > 0;) {
      if (static_cast<std::int32_t>(tag.operation() - stack[i].number) < 0) continue;
      stack[i].own_freed_bytes += bytes;
      ++stack[i].own_freed_calls;
      return;
    }
  }

  /// Forgets all open operations.
  void forget() noexcept {
    open = too_deep = 0;
    owner = owner_word(0, number, operations);
  }

  /// Begins an operation. A signal handler may interrupt this function and begin operations of its
  /// own. They are above the current operation on the stack, and have ended when this function
  /// continues.
  void enter(std::uint32_t name, std::uint32_t slot, bool is_unit) noexcept {
    if (open == max_open) {
      ++too_deep;
      return;
    }
    open_operation& o = stack[open++];
    std::atomic_signal_fence(std::memory_order_seq_cst);
    o = {owner,
         allocated_bytes.get(),
         allocated_calls.get(),
         freed_bytes.get(),
         freed_calls.get(),
         peak.get(),
         0,
         0,
         ++operations,
         name,
         is_unit};
    peak.set(live());
    owner = owner_word(slot, number, operations);
  }

  /// Ends the innermost open operation called `name` and sets `change` to what it allocated and
  /// freed. Returns 0 if the stack contains no operation `name` or is too deep, 2 if the operation
  /// was a unit, otherwise 1; see heap_hook::leave.
  int leave(std::uint32_t name, lotus::detail::heap_change& change) noexcept {
    if (too_deep > 0) {
      --too_deep;
      return 0;
    }
    std::uint32_t at = open;
    while (at > 0 && stack[at - 1].name != name) --at;
    if (at == 0) return 0;
    while (open > at) end_innermost();
    const open_operation o = stack[open - 1];
    change.allocated_bytes = allocated_bytes.get() - o.allocated_bytes;
    change.allocated_calls = allocated_calls.get() - o.allocated_calls;
    change.freed_bytes = freed_bytes.get() - o.freed_bytes;
    change.freed_calls = freed_calls.get() - o.freed_calls;
    const auto unfreed = [](std::uint64_t allocated_sum, std::uint64_t freed_sum) {
      return allocated_sum > freed_sum ? allocated_sum - freed_sum : 0;
    };
    change.retained_bytes = unfreed(change.allocated_bytes, o.own_freed_bytes);
    change.retained_blocks = unfreed(change.allocated_calls, o.own_freed_calls);
    const auto before = static_cast<std::int64_t>(o.allocated_bytes - o.freed_bytes);
    change.peak_bytes = static_cast<std::uint64_t>(peak.get() - before);
    end_innermost();
    return o.is_unit ? 2 : 1;
  }

 private:
  void end_innermost() noexcept {
    const open_operation& o = stack[open - 1];
    if (o.peak > peak.get()) peak.set(o.peak);
    if (open > 1) {
      stack[open - 2].own_freed_bytes += o.own_freed_bytes;
      stack[open - 2].own_freed_calls += o.own_freed_calls;
    }
    // A block that is allocated outside all operations gets the number of the latest operation.
    // Operation numbers are compared modulo 2^32, so the number in a tag must not be much older
    // than those of the open operations.
    owner = open > 1 ? o.owner_around : owner_word(0, number, operations);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    --open;
  }
};

}  // namespace lotus::memory

#endif  // LOTUS_MEMORY_THREAD_COUNTS_HPP
