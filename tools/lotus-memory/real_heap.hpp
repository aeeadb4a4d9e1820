// Provides the heap functions that the program would use without this library.
#ifndef LOTUS_MEMORY_REAL_HEAP_HPP
#define LOTUS_MEMORY_REAL_HEAP_HPP

#include <cstddef>
#include <cstdint>

// While a sanitizer initializes itself, it allocates memory through this library. Functions that
// may run at that time must not be instrumented for the sanitizer.
#if defined(__SANITIZE_ADDRESS__)
  #define LOTUS_MEMORY_EARLY __attribute__((no_sanitize("address", "undefined")))
  #define LOTUS_MEMORY_INLINE __attribute__((noinline))
#else
  #define LOTUS_MEMORY_EARLY
  #define LOTUS_MEMORY_INLINE inline __attribute__((always_inline))
#endif

namespace lotus::memory {

/// The heap functions of the next library in the search order: glibc, jemalloc, tcmalloc or a
/// sanitizer.
struct real_heap {
  void* (*malloc)(std::size_t) = nullptr;
  void* (*calloc)(std::size_t, std::size_t) = nullptr;
  void* (*realloc)(void*, std::size_t) = nullptr;
  void* (*memalign)(std::size_t, std::size_t) = nullptr;
  int (*posix_memalign)(void**, std::size_t, std::size_t) = nullptr;
  void* (*aligned_alloc)(std::size_t, std::size_t) = nullptr;
  void (*free)(void*) = nullptr;
  std::size_t (*usable_size)(void*) = nullptr;
  bool glibc = false;  ///< whether this is glibc's heap, so that glibc_usable() works
};

/// Returns the usable size of a block, as glibc's malloc_usable_size(3) does. A call of
/// malloc_usable_size() would take a quarter of the time of a malloc and free pair. glibc stores
/// the size in front of each block (see malloc/malloc.c); its lowest bits are flags.
inline std::size_t glibc_usable(const void* block) noexcept {
  constexpr std::size_t flags = 7;
  constexpr std::size_t is_mapped = 2;
  const std::size_t word = static_cast<const std::size_t*>(block)[-1];
  return (word & ~flags) - sizeof(word) * ((word & is_mapped) != 0 ? 2 : 1);
}

extern __attribute__((visibility("hidden"))) real_heap real;

/// Looks up the functions of the real heap. Returns false if it is called during the lookup,
/// because the lookup itself may allocate memory.
__attribute__((cold)) LOTUS_MEMORY_EARLY bool find_real_heap() noexcept;

LOTUS_MEMORY_EARLY inline bool has_real_heap() noexcept {
  return __builtin_expect(
             static_cast<long>(__atomic_load_n(&real.usable_size, __ATOMIC_ACQUIRE) != nullptr),
             1) != 0 ||
         find_real_heap();
}

inline std::size_t usable(void* block) noexcept {
  return __builtin_expect(static_cast<long>(real.glibc), 1) != 0 ? glibc_usable(block)
                                                                 : real.usable_size(block);
}

/// Returns zeroed memory for allocations during the lookup of the real heap; null if none is left.
/// The memory is never freed.
LOTUS_MEMORY_EARLY void* early_memory(std::size_t alignment, std::size_t bytes) noexcept;

#if defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t early_room = std::size_t{1} << 20;
#else
inline constexpr std::size_t early_room = std::size_t{64} << 10;
#endif
extern __attribute__((visibility("hidden"))) char early[early_room];

LOTUS_MEMORY_EARLY inline bool is_early(const void* block) noexcept {
  return reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(early) <
         early_room;
}

}  // namespace lotus::memory

#endif  // LOTUS_MEMORY_REAL_HEAP_HPP
