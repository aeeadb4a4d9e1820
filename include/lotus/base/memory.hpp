// Provides memory directly from the kernel, because the library must not call malloc where a signal
// handler may have interrupted malloc.
#ifndef LOTUS_BASE_MEMORY_HPP
#define LOTUS_BASE_MEMORY_HPP

#include <sys/mman.h>

#include <cstddef>
#include <new>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns zeroed private memory directly from the kernel and not from malloc, because a signal
/// handler that interrupted malloc must be able to record. Returns null if there is no memory.
inline void* map_memory(std::size_t bytes) noexcept {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

/// Makes the kernel fill the pages of this memory with zeros in every child process. Returns false
/// if the kernel cannot do that (Linux before 4.14).
inline bool clear_in_children(void* memory, std::size_t bytes) noexcept {
  // The value of MADV_WIPEONFORK, which older system headers do not define.
  constexpr int wipe_on_fork = 18;
  return madvise(memory, bytes, wipe_on_fork) == 0;
}

/// A temporary object in zeroed memory directly from the kernel. Used for large objects, because a
/// scope may run on a small stack: that of a fibre or of a signal handler. Check first that there
/// is memory.
template <class T>
class mapped {
 public:
  mapped() noexcept : object_{static_cast<T*>(map_memory(sizeof(T)))} {
    if (object_ != nullptr) new (object_) T;
  }
  ~mapped() {
    if (object_ != nullptr) munmap(object_, sizeof(T));
  }
  mapped(const mapped&) = delete;
  mapped& operator=(const mapped&) = delete;

  explicit operator bool() const noexcept { return object_ != nullptr; }
  T& operator*() const noexcept { return *object_; }

 private:
  T* object_;
};

/// A buffer that can grow, in zeroed memory directly from the kernel. The object owns the memory.
class growing_memory {
 public:
  growing_memory() noexcept = default;
  growing_memory(const growing_memory&) = delete;
  growing_memory& operator=(const growing_memory&) = delete;
  ~growing_memory() {
    if (memory_ != nullptr) munmap(memory_, room_);
  }

  /// Adds `bytes` at the end and returns a pointer to them; null if there is no memory. Pointers
  /// from earlier calls become invalid.
  void* add(std::size_t bytes) noexcept {
    if (bytes > room_ - used_) {
      std::size_t room = room_ == 0 ? std::size_t{16} << 10 : room_ * 2;
      while (room - used_ < bytes) room *= 2;
      void* grown = room_ == 0 ? map_memory(room) : mremap(memory_, room_, room, MREMAP_MAYMOVE);
      if (grown == nullptr || grown == MAP_FAILED) return nullptr;
      memory_ = static_cast<char*>(grown);
      room_ = room;
    }
    char* const added = memory_ + used_;
    used_ += bytes;
    return added;
  }

  const char* data() const noexcept { return memory_; }
  std::size_t bytes() const noexcept { return used_; }

 private:
  char* memory_ = nullptr;
  std::size_t used_ = 0;
  std::size_t room_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_MEMORY_HPP
