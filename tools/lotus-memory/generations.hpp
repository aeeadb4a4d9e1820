// Assigns slots, in which allocations are summed up by operation and time.
#ifndef LOTUS_MEMORY_GENERATIONS_HPP
#define LOTUS_MEMORY_GENERATIONS_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lotus::memory {

inline constexpr std::uint32_t slots = 1U << 16U;

/// Assigns slot numbers to pairs of an operation's name and a generation. A generation is a range
/// of units: batches, or outermost operations in a program without batches. A generation is one
/// unit long at first; its length doubles after 64, 128, 256 units and so on. In this way, memory
/// that is never freed can be attributed to the time when it was allocated, while the number of
/// slots grows only with the logarithm of time. Slot 0 stands for all allocations outside
/// operations. If all slots are used, the last generation continues. Thread safety: all functions.
class generations {
 public:
  /// Must be called when a unit begins. Starts a new generation if the current generation already
  /// has its full number of units.
  void unit_begins() noexcept {
    const std::uint64_t unit = units_.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t end = end_.load(std::memory_order_relaxed);
    if (unit < end || next_slot_.load(std::memory_order_relaxed) >= last_slot) return;
    const std::uint64_t length = length_.load(std::memory_order_relaxed);
    if (!end_.compare_exchange_strong(end, unit + length, std::memory_order_relaxed)) return;
    first_unit_.store(unit, std::memory_order_relaxed);
    if (unit + length >= length * generations_of_a_length) {
      length_.store(2 * length, std::memory_order_relaxed);
    }
    generation_.fetch_add(1, std::memory_order_release);
  }
  std::uint64_t units() const noexcept { return units_.load(std::memory_order_relaxed); }

  /// Returns the slot of an operation that begins now.
  std::uint32_t slot_of(std::uint32_t name) noexcept {
    std::atomic<std::uint64_t>& known = of_name_[name < slots ? name : slots - 1];
    const std::uint64_t generation = generation_.load(std::memory_order_acquire);
    const std::uint64_t of = known.load(std::memory_order_relaxed);
    if (__builtin_expect(static_cast<long>(of >> 32U == generation && of != 0), 1) != 0) {
      return static_cast<std::uint32_t>(of);
    }
    std::uint32_t slot = next_slot_.load(std::memory_order_relaxed);
    do {
      if (slot >= last_slot) return of == 0 ? last_slot : static_cast<std::uint32_t>(of);
    } while (!next_slot_.compare_exchange_weak(slot, slot + 1, std::memory_order_relaxed));
    unit_[slot].store(first_unit_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    name_[slot].store(name, std::memory_order_release);
    known.store(generation << 32U | slot, std::memory_order_relaxed);
    return slot;
  }

  /// Returns the number of the name of the operation to which a slot between first_slot() and
  /// end_slot() belongs; 0 if another thread is just assigning the slot.
  std::uint32_t name(std::uint32_t slot) const noexcept {
    return name_[slot].load(std::memory_order_acquire);
  }
  std::uint64_t first_unit(std::uint32_t slot) const noexcept {
    return unit_[slot].load(std::memory_order_relaxed);
  }
  std::uint32_t first_slot() const noexcept { return first_slot_; }
  std::uint32_t end_slot() const noexcept { return next_slot_.load(std::memory_order_acquire); }

  /// Starts counting units again in a forked child, where the units of the parent do not matter.
  void begin_anew() noexcept {
    units_.store(0, std::memory_order_relaxed);
    end_.store(0, std::memory_order_relaxed);
    length_.store(1, std::memory_order_relaxed);
    first_unit_.store(0, std::memory_order_relaxed);
    first_slot_ = next_slot_.load(std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t generations_of_a_length = 64;
  static constexpr std::uint32_t last_slot = slots - 1;

  std::atomic<std::uint64_t> units_{0};
  std::atomic<std::uint64_t> end_{0};  // first unit after the current generation
  std::atomic<std::uint64_t> length_{1};
  std::atomic<std::uint64_t> first_unit_{0};
  std::atomic<std::uint64_t> generation_{1};
  std::atomic<std::uint32_t> next_slot_{1};
  std::uint32_t first_slot_ = 1;
  // For each name: the latest generation (upper 32 bits) and its slot.
  std::atomic<std::uint64_t> of_name_[slots]{};
  std::atomic<std::uint32_t> name_[slots]{};
  std::atomic<std::uint64_t> unit_[slots]{};
};

}  // namespace lotus::memory

#endif  // LOTUS_MEMORY_GENERATIONS_HPP
