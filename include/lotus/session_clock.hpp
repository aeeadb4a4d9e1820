// The running session's clock: when the map from ticks to time is tied again.
#ifndef LOTUS_SESSION_CLOCK_HPP
#define LOTUS_SESSION_CLOCK_HPP

#include <time.h>

#include <atomic>
#include <cstdint>

#include "lotus/clock.hpp"
#include "lotus/config.hpp"
#include "lotus/line.hpp"
#include "lotus/lock.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: all functions.
class session_clock {
 public:
  session_clock() noexcept : hardware_{hardware_ticks_invariant()} {}

  /// Whether ticks are those of the hardware counter, and not ns of CLOCK_MONOTONIC.
  bool hardware() const noexcept { return hardware_; }

  /// Takes 1 ms, which gives the rate to some 20 ppm; the first tie, 5 ms later, improves it.
  void begin() noexcept {
    const locked hold{lock_};
    const clock_anchor first = read_anchor();
    while (elapsed_ns() - first.elapsed_ns < 1'000'000) {
    }
    map_.begin(first, read_anchor());
    ties_.store(0, std::memory_order_relaxed);
    last_tie_ns_.store(first.elapsed_ns, std::memory_order_relaxed);
  }

  /// Ties the map to CLOCK_REALTIME again when that is due: early ones soon, for they give the
  /// rate.
  /// @param stored  called with the map, under the clock's lock, when it has changed.
  /// @return the step of the wall clock that this has found, in ns, or 0.
  template <class Stored>
  std::int64_t tie(Stored&& stored) noexcept {
    const std::int64_t due_ns = ties_.load(std::memory_order_relaxed) < 3 ? 5'000'000 : 90'000'000;
    const auto early = [&](std::int64_t now_ns) {
      return now_ns - last_tie_ns_.load(std::memory_order_relaxed) < due_ns;
    };
    if (early(elapsed_ns())) return 0;
    const locked hold{lock_};
    const clock_anchor now = read_anchor();
    if (early(now.elapsed_ns)) return 0;
    const std::int64_t stepped_ns = map_.tie(now);
    last_tie_ns_.store(now.elapsed_ns, std::memory_order_relaxed);
    ties_.fetch_add(1, std::memory_order_relaxed);
    stored(map_);
    return stepped_ns;
  }

  /// Calls `use(map)` with nobody changing it.
  template <class Use>
  void with_map(Use&& use) noexcept {
    const locked hold{lock_};
    use(map_);
  }

  tick_converter converter() noexcept { return {map_, &lock_}; }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  std::uint64_t ticks() const noexcept {
    return hardware_ ? hardware_ticks() : static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
  }

  /// While a machine sleeps its counter goes on, as CLOCK_BOOTTIME does; CLOCK_MONOTONIC stands.
  std::int64_t elapsed_ns() const noexcept {
    return clock_ns(hardware_ ? CLOCK_BOOTTIME : CLOCK_MONOTONIC);
  }

  /// The three clocks at one moment: the tightest of a few readings.
  clock_anchor read_anchor() const noexcept {
    clock_anchor best{};
    std::uint64_t tightest = ~std::uint64_t{0};
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t before = ticks();
      const std::int64_t realtime_ns = clock_ns(CLOCK_REALTIME);
      const std::uint64_t between = ticks();
      const std::int64_t elapsed = elapsed_ns();
      const std::uint64_t after = ticks();
      if (after - before >= tightest) continue;
      tightest = after - before;
      best = {before + (between - before) / 2, elapsed, realtime_ns};
    }
    return best;
  }

  const bool hardware_;
  mutex lock_;
  clock_map map_{};
  std::atomic<std::int64_t> last_tie_ns_{0};
  std::atomic<std::uint32_t> ties_{0};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SESSION_CLOCK_HPP
