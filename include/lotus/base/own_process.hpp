// Detects whether data in memory was written by this process or copied from its parent by a fork.
#ifndef LOTUS_BASE_OWN_PROCESS_HPP
#define LOTUS_BASE_OWN_PROCESS_HPP

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Detects a child that was created without fork handlers (_Fork, clone): such a child has copies
/// of all data, including locks that no thread will ever release. A child of vfork is not detected,
/// because it runs in its parent's memory. Thread safety: call claim() while the process has one
/// thread; is_this() may be called on any thread, also in signal handlers.
class own_process {
 public:
  /// Declares that the library's data in memory belongs to this process from now on.
  void claim() noexcept {
    if (mark_ == nullptr) make_mark();
    if (mark_ != nullptr) mark_->store(1, std::memory_order_relaxed);
    pid_ = getpid();
  }

  bool is_this() const noexcept {
    if (mark_ != nullptr) return mark_->load(std::memory_order_relaxed) != 0;
    return getpid() == pid_;
  }

 private:
  using mark = std::atomic<std::uint32_t>;

  void make_mark() noexcept {
    const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const memory = map_memory(bytes);
    if (memory == nullptr) return;
    if (clear_in_children(memory, bytes)) {
      mark_ = static_cast<mark*>(memory);
    } else {
      munmap(memory, bytes);
    }
  }

  /// Points to a value that is 1 in this process and 0 in its children, because the kernel fills
  /// the page that contains the value with zeros in every child. Null if the kernel cannot do that.
  mark* mark_ = nullptr;
  pid_t pid_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_OWN_PROCESS_HPP
