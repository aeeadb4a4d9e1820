// Defines the interface of liblotus_memory.so, a library that counts the allocations of a program
// if LD_PRELOAD names it.
#ifndef LOTUS_HEAP_HEAP_HOOK_HPP
#define LOTUS_HEAP_HEAP_HOOK_HPP

#include <cstddef>
#include <cstdint>

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// How a thread used the heap during one operation. Sizes are those that the program requested.
struct heap_change {
  std::uint64_t allocated_bytes;
  std::uint64_t allocated_calls;
  /// Size of freed blocks, including those that other threads had allocated.
  std::uint64_t freed_bytes;
  std::uint64_t freed_calls;
  /// Bytes that this thread allocated during the operation and did not free.
  std::uint64_t retained_bytes;
  std::uint64_t retained_blocks;
  std::uint64_t peak_bytes;  ///< maximum of allocated minus freed bytes during the operation
};

/// How the process has used the heap since it began or was forked.
struct heap_sums {
  std::uint64_t allocated_bytes;
  std::uint64_t allocated_calls;
  /// Allocated minus freed bytes, including those of a parent process before the fork.
  std::int64_t held_bytes;
  std::uint64_t units;      ///< number of units (see heap_hook::enter()) that have begun
  std::uint32_t unit_name;  ///< id of the name of a unit; 0: no unit has begun
};

/// The interface of liblotus_memory.so. It is the only symbol of that library except for the
/// functions that the library replaces, such as malloc. All functions are thread-safe, but not
/// signal-safe, as malloc(3) is not; enter() and leave() apply to the calling thread. No function
/// allocates.
struct heap_hook {
  std::uint32_t version;
  std::uint32_t bytes;  ///< size of this struct
  /// Begins an operation. The library groups allocations into generations of consecutive units. A
  /// unit is the building of a batch or, in a program without batches, an outermost operation.
  /// @param name  id of the operation's name. Allocations in the operation are attributed to it,
  /// except those in inner operations.
  /// @param is_batch  whether the operation builds a batch.
  void (*enter)(std::uint32_t name, bool is_batch) noexcept;
  /// Ends the innermost open operation of this name, and all operations still open inside it.
  /// @return 0: no such operation is open; 1: the operation ended; 2: it ended and was a unit.
  int (*leave)(std::uint32_t name, heap_change& change) noexcept;
  /// Forgets all operations, of all threads, that have not ended.
  void (*forget)() noexcept;
  std::uint64_t (*units)() noexcept;  ///< number of units that have begun
  void (*sum)(heap_sums& sums) noexcept;
  /// Reports the memory in use that was allocated since the process began or was forked. Calls
  /// `tell` once for each pair of a name (id 0: outside all operations) and a generation, with the
  /// number of the generation's first unit and the number of bytes in use.
  void (*held)(void (*tell)(void* to, std::uint32_t name, std::uint64_t unit,
                            std::uint64_t bytes) noexcept,
               void* to) noexcept;
  /// Describes in `text` the allocations that the library cannot count; writes "" if it knows of
  /// none.
  void (*blind_to)(char* text, std::size_t bytes) noexcept;
};

inline constexpr std::uint32_t heap_hook_version = 1;
inline constexpr char heap_hook_symbol[] = "lotus_heap_hook";

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_HEAP_HEAP_HOOK_HPP
