// The interface between a session and liblotus_memory.so, a library loaded before the program's own
// libraries that counts the program's allocations.
#ifndef LOTUS_HEAP_HEAP_HOOK_HPP
#define LOTUS_HEAP_HEAP_HOOK_HPP

#include <cstddef>
#include <cstdint>

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// One thread's use of the heap between two moments. Bytes are those that were requested.
struct heap_change {
  std::uint64_t allocated_bytes;
  std::uint64_t allocated_calls;
  std::uint64_t freed_bytes;  ///< of any blocks, whichever thread allocated them
  std::uint64_t freed_calls;
  std::uint64_t retained_bytes;  ///< allocated, and not freed by this thread meanwhile
  std::uint64_t retained_blocks;
  std::uint64_t peak_bytes;  ///< maximum growth of its heap: allocated minus freed
};

/// The process's use of the heap since it began or was forked. A name is that of the innermost
/// operation at the allocation, or 0 outside any.
struct heap_sums {
  std::uint64_t allocated_bytes;
  std::uint64_t allocated_calls;
  std::int64_t held_bytes;  ///< allocated minus freed by all threads, including before a fork
  std::uint64_t units;      ///< number of units that have begun
  std::uint32_t unit_name;  ///< what a unit is: see enter(); 0: there was none
};

/// The only symbol of that library besides the functions that it replaces. Thread safety: all;
/// enter() and leave() refer to the calling thread. Signal safety: none, like malloc(3). None of
/// the functions allocates.
struct heap_hook {
  std::uint32_t version;
  std::uint32_t bytes;  ///< size of this structure
  /// An operation begins. Allocations are grouped into generations by units: batches if there are
  /// any, else outermost operations.
  /// @param name      of the operation; allocations in it are attributed to it.
  /// @param is_batch  whether it builds a batch.
  void (*enter)(std::uint32_t name, bool is_batch) noexcept;
  /// The innermost operation of this name ends, and with it all that began in it and have not
  /// ended.
  /// @return 0: there is none; 1: it ended; 2: it ended and was a unit.
  int (*leave)(std::uint32_t name, heap_change& change) noexcept;
  /// Forgets the operations that are open on all threads.
  void (*forget)() noexcept;
  std::uint64_t (*units)() noexcept;  ///< number of units that have begun
  void (*sum)(heap_sums& sums) noexcept;
  /// Reports what is still held, whichever thread should free it: by name, and by the first unit of
  /// the generation in which it was allocated. Excludes allocations before a fork.
  void (*held)(void (*tell)(void* to, std::uint32_t name, std::uint64_t unit,
                            std::uint64_t bytes) noexcept,
               void* to) noexcept;
  /// Describes which allocations of this process it cannot see; an empty text if it knows of none.
  void (*blind_to)(char* text, std::size_t bytes) noexcept;
};

inline constexpr std::uint32_t heap_hook_version = 1;
inline constexpr char heap_hook_symbol[] = "lotus_heap_hook";

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_HEAP_HEAP_HOOK_HPP
