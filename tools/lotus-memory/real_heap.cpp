#include "real_heap.hpp"

#include <dlfcn.h>
#if __has_include(<gnu/libc-version.h>)
  #include <gnu/libc-version.h>
#endif

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace lotus::memory {

real_heap real;
alignas(4096) char early[early_room];

namespace {

#if defined(__SANITIZE_ADDRESS__)
bool begun = false;
__attribute__((constructor)) void begin() noexcept {
  begun = true;
}
#else
constexpr bool begun = true;
#endif

// These variables are not atomic, because the functions of the real heap are looked up before a
// second thread exists.
bool lookup_in_progress = false;
std::size_t early_used = 0;

template <class Function>
bool look_up(Function& function, const char* name) noexcept {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  return function != nullptr;
}

/// Returns whether glibc stores sizes where glibc_usable() expects them. Checks a small, a medium
/// and a large block. glibc uses mmap for large blocks; 40 MiB is above the highest threshold to
/// which glibc may raise the size of such blocks.
bool is_as_expected([[maybe_unused]] const real_heap& heap) noexcept {
#if __has_include(<gnu/libc-version.h>)
  Dl_info its{};
  Dl_info libc{};
  if (dladdr(reinterpret_cast<void*>(heap.malloc), &its) == 0 ||
      dladdr(reinterpret_cast<void*>(&gnu_get_libc_version), &libc) == 0 ||
      its.dli_fbase != libc.dli_fbase) {
    return false;
  }
  constexpr std::size_t sizes[] = {1, 5000, std::size_t{40} << 20U};
  return std::all_of(std::begin(sizes), std::end(sizes), [&](std::size_t bytes) {
    void* const block = heap.malloc(bytes);
    if (block == nullptr) return false;
    const bool same = glibc_usable(block) == heap.usable_size(block);
    heap.free(block);
    return same;
  });
#else
  return false;
#endif
}

}  // namespace

bool find_real_heap() noexcept {
  if (lookup_in_progress || !begun) return false;
  lookup_in_progress = true;
  real_heap found;
  const bool all = look_up(found.malloc, "malloc") && look_up(found.calloc, "calloc") &&
                   look_up(found.realloc, "realloc") && look_up(found.memalign, "memalign") &&
                   look_up(found.posix_memalign, "posix_memalign") &&
                   look_up(found.aligned_alloc, "aligned_alloc") && look_up(found.free, "free") &&
                   look_up(found.usable_size, "malloc_usable_size");
  if (all) {
    found.glibc = is_as_expected(found);
    auto* const last = found.usable_size;
    found.usable_size = nullptr;
    real = found;
    __atomic_store_n(&real.usable_size, last, __ATOMIC_RELEASE);
  }
  lookup_in_progress = false;
  return all;
}

void* early_memory(std::size_t alignment, std::size_t bytes) noexcept {
  const std::size_t at = (early_used + alignment - 1) & ~(alignment - 1);
  if (at > early_room || bytes > early_room - at) return nullptr;
  early_used = at + bytes;
  return early + at;
}

}  // namespace lotus::memory
