// Memory that this process and the children it forks see together.
#ifndef IMAGENET_SHARED_MEMORY_HPP
#define IMAGENET_SHARED_MEMORY_HPP

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

namespace imagenet {

/// Owns a mapping, zeroed at first, page-aligned. All of it is there from the start, so that no
/// batch pays for being the first in its place.
class shared_memory {
 public:
  /// Errors: std::system_error when there is not so much memory.
  explicit shared_memory(std::size_t size_bytes)
      : size_bytes_{size_bytes},
        begin_{mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)} {
    if (begin_ == MAP_FAILED) {
      throw std::system_error{errno, std::generic_category(),
                              "no " + std::to_string(size_bytes >> 20U) + " MiB for the batches"};
    }
  }
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  ~shared_memory() { munmap(begin_, size_bytes_); }

  std::byte* data() const { return static_cast<std::byte*>(begin_); }

 private:
  std::size_t size_bytes_;
  void* begin_;
};

}  // namespace imagenet

#endif  // IMAGENET_SHARED_MEMORY_HPP
