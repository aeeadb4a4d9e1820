// Provides the buffers in which draining threads format log lines.
#ifndef LOTUS_STORE_DRAIN_BUFFERS_HPP
#define LOTUS_STORE_DRAIN_BUFFERS_HPP

#include <sys/mman.h>

#include <cstddef>

#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/format/drain.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Keeps a few unused buffers for later drains. All functions are thread-safe.
class drain_buffers {
 public:
  /// Returns a buffer; null if there is no memory.
  drain_buffer* take() noexcept {
    const locked hold{lock_};
    if (spare_count_ > 0) return spare_[--spare_count_];
    return static_cast<drain_buffer*>(map_memory(sizeof(drain_buffer)));
  }

  void give_back(drain_buffer* buffer) noexcept {
    const locked hold{lock_};
    if (spare_count_ < max_spare) {
      spare_[spare_count_++] = buffer;
    } else {
      munmap(buffer, sizeof(drain_buffer));
    }
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::size_t max_spare = 4;

  mutex lock_;
  drain_buffer* spare_[max_spare] = {};
  std::size_t spare_count_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_DRAIN_BUFFERS_HPP
