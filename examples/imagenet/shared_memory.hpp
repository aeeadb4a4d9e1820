// Provides memory that a process shares with the processes that it forks.
#ifndef IMAGENET_SHARED_MEMORY_HPP
#define IMAGENET_SHARED_MEMORY_HPP

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

namespace imagenet {

/// Owns memory that is filled with zeros and aligned to pages. All pages are allocated in the
/// constructor, so that the first batches do not take longer than the others.
class shared_memory {
 public:
  /// Throws std::system_error if there is not enough memory.
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
