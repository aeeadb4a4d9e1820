// Provides the state that recording threads check: whether recording is on, and what to do when a
// ring is full.
#ifndef LOTUS_STORE_RECORDING_STATE_HPP
#define LOTUS_STORE_RECORDING_STATE_HPP

#include <atomic>

#include "lotus/config.hpp"
#include "lotus/options.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Whether recording is on, and how records are stored. All functions are thread-safe, but call
/// only one of begin(), write_through() and end() at a time.
class recording_state {
 public:
  bool is_on() const noexcept { return on_.load(std::memory_order_acquire); }
  /// Whether each record is written to its log immediately, because the process exits and no drain
  /// follows.
  bool writes_through() const noexcept { return write_through_.load(std::memory_order_relaxed); }
  bool drops_when_full() const noexcept {
    return when_full_.load(std::memory_order_relaxed) == full_ring::drop;
  }

  void begin(full_ring when_full) noexcept {
    when_full_.store(when_full, std::memory_order_relaxed);
    write_through_.store(false, std::memory_order_relaxed);
    on_.store(true, std::memory_order_release);
  }
  void write_through() noexcept { write_through_.store(true, std::memory_order_relaxed); }
  void end() noexcept { on_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> on_{false};
  std::atomic<bool> write_through_{false};
  std::atomic<full_ring> when_full_{full_ring::drop};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDING_STATE_HPP
