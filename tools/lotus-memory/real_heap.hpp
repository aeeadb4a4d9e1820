// The heap that the program would have without us.
#ifndef LOTUS_MEMORY_REAL_HEAP_HPP
#define LOTUS_MEMORY_REAL_HEAP_HPP

#include <cstddef>
#include <cstdint>

// A sanitizer's own beginning allocates, by way of us: until it has begun nothing that it has
// instrumented may run.
#if defined(__SANITIZE_ADDRESS__)
  #define LOTUS_MEMORY_EARLY __attribute__((no_sanitize("address", "undefined")))
  #define LOTUS_MEMORY_INLINE __attribute__((noinline))
#else
  #define LOTUS_MEMORY_EARLY
  #define LOTUS_MEMORY_INLINE inline __attribute__((always_inline))
#endif

namespace lotus::memory {

/// The functions of whoever comes behind us: glibc's, or jemalloc's, tcmalloc's, a sanitizer's.
struct real_heap {
  void* (*malloc)(std::size_t) = nullptr;
  void* (*calloc)(std::size_t, std::size_t) = nullptr;
  void* (*realloc)(void*, std::size_t) = nullptr;
  void* (*memalign)(std::size_t, std::size_t) = nullptr;
  int (*posix_memalign)(void**, std::size_t, std::size_t) = nullptr;
  void* (*aligned_alloc)(std::size_t, std::size_t) = nullptr;
  void (*free)(void*) = nullptr;
  std::size_t (*usable_size)(void*) = nullptr;
  bool glibc = false;  ///< and its blocks are as glibc_usable() takes them
};

/// As glibc's malloc_usable_size(3), which takes a fourth of what a pair of malloc and free does.
/// The size stands before each block (malloc/malloc.c), its lowest bits are flags.
inline std::size_t glibc_usable(const void* block) noexcept {
  constexpr std::size_t flags = 7;
  constexpr std::size_t is_mapped = 2;
  const std::size_t word = static_cast<const std::size_t*>(block)[-1];
  return (word & ~flags) - sizeof(word) * ((word & is_mapped) != 0 ? 2 : 1);
}

extern __attribute__((visibility("hidden"))) real_heap real;

/// Looks them up; false while that is being done, for looking up may allocate.
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

/// Zeroed memory, never given back, for who allocates while we look. Null where it is used up.
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
