// Limits how many threads' log files stay open between two drains.
#ifndef LOTUS_STORE_KEPT_LOGS_HPP
#define LOTUS_STORE_KEPT_LOGS_HPP

#include <atomic>
#include <cstdint>

#include "lotus/base/descriptor.hpp"
#include "lotus/config.hpp"
#include "lotus/record/thread.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Keeps the log files of some threads open: opening them for each drain would cost more than
/// writing, but with all of them open the program could run out of file descriptors. All functions
/// are thread-safe; call them while producer::guard is held.
class kept_logs {
 public:
  void keep_or_close(producer& p) noexcept {
    if (p.logs_kept_open) return;
    p.logs_kept_open = threads_.fetch_add(1, std::memory_order_relaxed) < max_threads;
    if (p.logs_kept_open) return;
    threads_.fetch_sub(1, std::memory_order_relaxed);
    close_all(p.logs);
  }

  void close(producer& p) noexcept {
    close_all(p.logs);
    if (p.logs_kept_open) threads_.fetch_sub(1, std::memory_order_relaxed);
    p.logs_kept_open = false;
  }

 private:
  /// Maximum number of threads whose logs stay open; a thread has up to three logs.
  static constexpr std::uint32_t max_threads = 32;

  std::atomic<std::uint32_t> threads_{0};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_KEPT_LOGS_HPP
