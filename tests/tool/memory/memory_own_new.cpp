// Replaces operator new of a program by one that does not use malloc.
#include <atomic>
#include <cstddef>
#include <new>

namespace {

alignas(64) char pool[std::size_t{1} << 20];
std::atomic<std::size_t> used{0};

}  // namespace

void* operator new(std::size_t bytes) {
  const std::size_t at = used.fetch_add((bytes + 63) & ~std::size_t{63});
  if (at + bytes > sizeof(pool)) throw std::bad_alloc();
  return pool + at;
}
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
