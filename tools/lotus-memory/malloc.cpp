// Replaces the malloc functions of the program: counts each call and forwards it to the real heap.

#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "block_tag.hpp"
#include "counts.hpp"
#include "real_heap.hpp"

namespace {

using lotus::memory::block_tag;
using lotus::memory::counts;
using lotus::memory::has_real_heap;
using lotus::memory::is_early;
using lotus::memory::real;
using lotus::memory::tag_bytes;
using lotus::memory::thread_counts;

/// Returns the size to request from the heap, including the tag. If this would be too large,
/// returns the original size, which the heap rejects.
std::size_t with_tag(std::size_t bytes) noexcept {
  return bytes <= PTRDIFF_MAX - tag_bytes ? bytes + tag_bytes : bytes;
}

LOTUS_MEMORY_INLINE void* count(void* block, std::size_t bytes) noexcept {
  if (__builtin_expect(static_cast<long>(block == nullptr), 0) != 0) return nullptr;
  thread_counts& t = counts();
  lotus::memory::put_tag(block, lotus::memory::usable(block), bytes, t.owner);
  t.allocated(bytes);
  return block;
}

LOTUS_MEMORY_INLINE void count_free(void* block) noexcept {
  const std::size_t usable = lotus::memory::usable(block);
  block_tag tag;
  if (!lotus::memory::read_tag(block, usable, tag)) return;
  lotus::memory::erase_tag(block, usable);
  counts().freed(tag);
}

__attribute__((cold, noinline)) LOTUS_MEMORY_EARLY void* early(std::size_t alignment,
                                                               std::size_t bytes) noexcept {
  void* const block = lotus::memory::early_memory(alignment, bytes);
  if (block == nullptr) errno = ENOMEM;
  return block;
}

}  // namespace

#define LOTUS_MEMORY_FUNCTION extern "C" LOTUS_MEMORY_EARLY __attribute__((visibility("default")))

// The C library uses reserved names for the parameters, so the names here are different.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)

LOTUS_MEMORY_FUNCTION void* malloc(std::size_t bytes) noexcept {
  if (!has_real_heap()) return early(alignof(std::max_align_t), bytes);
  return count(real.malloc(with_tag(bytes)), bytes);
}

LOTUS_MEMORY_FUNCTION void free(void* block) noexcept {
  if (block == nullptr || is_early(block) || !has_real_heap()) return;
  count_free(block);
  real.free(block);
}

LOTUS_MEMORY_FUNCTION void* calloc(std::size_t number, std::size_t each) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(number, each, &bytes)) bytes = SIZE_MAX;
  if (!has_real_heap()) return early(alignof(std::max_align_t), bytes);
  return count(real.calloc(1, with_tag(bytes)), bytes);
}

LOTUS_MEMORY_FUNCTION void* realloc(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return malloc(bytes);
  if (is_early(block) || !has_real_heap()) {
    void* const moved = malloc(bytes);
    if (moved == nullptr) return nullptr;
    const auto room = static_cast<std::size_t>(lotus::memory::early + lotus::memory::early_room -
                                               static_cast<char*>(block));
    return std::memcpy(moved, block, bytes < room ? bytes : room);
  }
  // Erase the tag before realloc() is called, because it may free the block, and another thread may
  // get the block immediately.
  const std::size_t usable = lotus::memory::usable(block);
  block_tag tag;
  const bool tagged = lotus::memory::read_tag(block, usable, tag);
  if (tagged) lotus::memory::erase_tag(block, usable);
  void* const moved = real.realloc(block, bytes == 0 ? 0 : with_tag(bytes));
  if (moved == nullptr && bytes != 0) {
    if (tagged) lotus::memory::put_tag(block, usable, tag.size(), tag.owner);
    return nullptr;
  }
  if (tagged) counts().freed(tag);
  // realloc to 0 bytes returns null (glibc) or a block that is too small for a tag.
  return bytes == 0 ? moved : count(moved, bytes);
}

LOTUS_MEMORY_FUNCTION void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  if (!has_real_heap()) return early(alignment, bytes);
  return count(real.memalign(alignment, with_tag(bytes)), bytes);
}

LOTUS_MEMORY_FUNCTION void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  if (!has_real_heap()) return early(alignment, bytes);
  return count(real.aligned_alloc(alignment, with_tag(bytes)), bytes);
}

LOTUS_MEMORY_FUNCTION int posix_memalign(void** block, std::size_t alignment,
                                         std::size_t bytes) noexcept {
  if (!has_real_heap()) {
    *block = lotus::memory::early_memory(alignment, bytes);
    return *block == nullptr ? ENOMEM : 0;
  }
  void* allocated = nullptr;
  const int error = real.posix_memalign(&allocated, alignment, with_tag(bytes));
  if (error == 0) *block = count(allocated, bytes);
  return error;
}

LOTUS_MEMORY_FUNCTION void* valloc(std::size_t bytes) noexcept {
  return memalign(static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), bytes);
}

LOTUS_MEMORY_FUNCTION void* pvalloc(std::size_t bytes) noexcept {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return memalign(page, bytes > SIZE_MAX - page ? bytes : (bytes + page - 1) & ~(page - 1));
}

/// Returns the number of bytes that the program may use, which does not include the tag.
LOTUS_MEMORY_FUNCTION std::size_t malloc_usable_size(void* block) noexcept {
  if (block == nullptr || is_early(block) || !has_real_heap()) return 0;
  const std::size_t usable = lotus::memory::usable(block);
  block_tag tag;
  return lotus::memory::read_tag(block, usable, tag) ? usable - tag_bytes : usable;
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)
