// What a program's allocations are counted by: a library that is loaded before the program's own,
// liblotus_memory.so, and how a session asks it.
#ifndef LOTUS_HEAP_HEAP_HOOK_HPP
#define LOTUS_HEAP_HEAP_HOOK_HPP

#include <cstddef>
#include <cstdint>

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// What one thread did to the heap between two moments. Bytes are those that were asked for.
struct heap_change {
  std::uint64_t allocated_bytes;
  std::uint64_t allocated_calls;
  std::uint64_t freed_bytes;  ///< of whatever blocks, whoever allocated them
  std::uint64_t freed_calls;
  std::uint64_t retained_bytes;  ///< of what was allocated, not freed by this thread meanwhile
  std::uint64_t retained_blocks;
  std::uint64_t peak_bytes;  ///< the most by which its heap had grown: allocated less freed
};

/// What the process did to the heap since it began, or was forked. A name is that of the innermost
/// operation at the time of the allocation, and 0 outside.
struct heap_sums {
  std::uint64_t allocated_bytes;
  std::uint64_t allocated_calls;
  std::int64_t held_bytes;  ///< allocated less freed, by all threads, those before a fork too
  std::uint64_t units;      ///< that have begun
  std::uint32_t unit_name;  ///< what a unit is: see enter(); 0: there was none
};

/// The one symbol of that library beside the functions that it stands in for. Thread safety: all;
/// enter() and leave() are about the calling thread. Signal safety: as malloc(3), none. None of
/// them allocates.
struct heap_hook {
  std::uint32_t version;
  std::uint32_t bytes;  ///< of this structure
  /// An operation begins. What a unit is, generations of allocations are told apart by: batches
  /// where there are any, else outermost operations.
  /// @param name      of the operation: what is allocated in it is held under that.
  /// @param is_batch  whether it makes a batch.
  void (*enter)(std::uint32_t name, bool is_batch) noexcept;
  /// The innermost of that name ends, and with it those that began in it and have not ended.
  /// @return 0: there is none; 1; 2: it was a unit.
  int (*leave)(std::uint32_t name, heap_change& change) noexcept;
  /// Whatever operations are open on any thread have not begun.
  void (*forget)() noexcept;
  std::uint64_t (*units)() noexcept;  ///< that have begun
  void (*sum)(heap_sums& sums) noexcept;
  /// Tells what is still held, whoever would have to free it: by name, and by the first unit of the
  /// generation in which it was allocated. Nothing of before a fork.
  void (*held)(void (*tell)(void* to, std::uint32_t name, std::uint64_t unit,
                            std::uint64_t bytes) noexcept,
               void* to) noexcept;
  /// Says what allocations of this process it does not see; an empty text: none that it knows of.
  void (*blind_to)(char* text, std::size_t bytes) noexcept;
};

inline constexpr std::uint32_t heap_hook_version = 1;
inline constexpr char heap_hook_symbol[] = "lotus_heap_hook";

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_HEAP_HEAP_HOOK_HPP
