// Provides the session's clock, which converts ticks to time and repeatedly adjusts the conversion
// to the wall clock.
#ifndef LOTUS_STORE_SESSION_CLOCK_HPP
#define LOTUS_STORE_SESSION_CLOCK_HPP

#include <time.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "lotus/base/clock.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/format/line.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Maps ticks to time. All functions are thread-safe, except those whose caller must hold lock_.
class session_clock {
 public:
  session_clock() noexcept : hardware_{hardware_ticks_invariant()} {}

  /// Whether ticks come from the hardware counter; otherwise they are ns of CLOCK_MONOTONIC.
  bool hardware() const noexcept { return hardware_; }

  /// Begins a new map (conversion from ticks to time). Takes 1 ms to measure the counter's rate to
  /// about 20 ppm; the first tie(), 5 ms later, improves the rate.
  void begin() noexcept {
    const locked hold{lock_};
    const clock_anchor first = read_anchor();
    while (clock_ns(CLOCK_MONOTONIC) - first.elapsed_ns < 1'000'000) {
    }
    map_.begin(first, read_anchor());
    slept_ns();
    ties_.store(0, std::memory_order_relaxed);
    last_tie_ns_.store(clock_ns(CLOCK_BOOTTIME), std::memory_order_relaxed);
  }

  /// Compares the map with CLOCK_REALTIME and corrects it, unless the last comparison was less than
  /// 90 ms ago. The first comparisons come after 5 ms already, to improve the rate quickly.
  /// @param stored  function to call with the changed map, under the clock's lock.
  /// @return the step, in ns, by which the wall clock was set since the last comparison; 0: none.
  template <class Stored>
  std::int64_t tie(Stored&& stored) noexcept {
    const std::int64_t due_ns = ties_.load(std::memory_order_relaxed) < 3 ? 5'000'000 : 90'000'000;
    // CLOCK_BOOTTIME also runs while the machine is suspended, so the map is compared after each
    // suspension.
    const auto early = [&] {
      const std::int64_t last_ns = last_tie_ns_.load(std::memory_order_relaxed);
      return clock_ns(CLOCK_BOOTTIME) - last_ns < due_ns;
    };
    if (early()) return 0;
    const locked hold{lock_};
    if (early()) return 0;
    const std::int64_t slept = slept_ns();
    const std::int64_t stepped_ns = map_.tie(read_anchor(), slept);
    last_tie_ns_.store(clock_ns(CLOCK_BOOTTIME), std::memory_order_relaxed);
    ties_.fetch_add(1, std::memory_order_relaxed);
    stored(map_);
    return stepped_ns;
  }

  /// Returns `use(map)`. The map from ticks to time does not change during the call.
  template <class Use>
  auto with_map(Use&& use) noexcept {
    const locked hold{lock_};
    return use(map_);
  }

  std::uint64_t ticks() const noexcept {
    return hardware_ ? hardware_ticks() : static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
  }

  /// Converts a duration in ns to ticks; nullopt if the rate is not known yet.
  std::optional<std::uint64_t> ticks_in(std::int64_t ns) noexcept {
    __extension__ using wide = __int128;
    if (!hardware_) return static_cast<std::uint64_t>(ns);
    const locked hold{lock_};
    const std::uint64_t rate = map_.current().rate;
    if (rate == 0) return std::nullopt;
    return static_cast<std::uint64_t>(wide{ns} * (wide{1} << 32) / rate);
  }

  struct placed_span {
    std::uint64_t begin_ticks;
    std::uint64_t end_ticks;
    /// Time since the span's end in ns, by the clock of the logs; negative if the end is in the
    /// future.
    std::int64_t over_for_ns;
  };
  /// Converts a span's times from ns of CLOCK_MONOTONIC to ticks, using the current rate.
  placed_span place(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    const locked hold{lock_};
    const clock_anchor now = hardware_ ? read_anchor() : clock_anchor{};
    placed_span of{ticks_at(begin_ns, now), ticks_at(end_ns, now), 0};
    const std::uint64_t now_ticks = ticks();
    const auto ns_at = [this](std::uint64_t at) {
      return static_cast<std::uint64_t>(map_.at(at).to_ns(at));
    };
    of.over_for_ns = static_cast<std::int64_t>(ns_at(now_ticks) - ns_at(of.end_ticks));
    return of;
  }

  tick_converter converter() noexcept { return {map_, &lock_}; }

  // --- Functions for a fork. The caller holds fork_lock().

  void before_fork() noexcept {
    forked_realtime_ns_ = clock_ns(CLOCK_REALTIME);
    forked_monotonic_ns_ = clock_ns(CLOCK_MONOTONIC);
  }
  /// Adapts the map if the child is in another time namespace (unshare(CLONE_NEWTIME)), where
  /// CLOCK_MONOTONIC and CLOCK_BOOTTIME differ from the parent's by constants.
  LOTUS_DETAIL_COLD void after_fork_in_child() noexcept {
    constexpr std::int64_t min_ns = 100'000'000;
    const std::int64_t elapsed_ns = clock_ns(CLOCK_REALTIME) - forked_realtime_ns_;
    const std::int64_t by_ns = clock_ns(CLOCK_MONOTONIC) - forked_monotonic_ns_ - elapsed_ns;
    if (-min_ns < by_ns && by_ns < min_ns) return;
    map_.shift_elapsed(by_ns, !hardware_);
    sleep_ = {};
    slept_ns();
    last_tie_ns_.store(clock_ns(CLOCK_BOOTTIME), std::memory_order_relaxed);
  }
  mutex& fork_lock() noexcept { return lock_; }

 private:
  /// Returns how long the machine was suspended since the last call, in ns. The caller holds lock_.
  std::int64_t slept_ns() noexcept {
    const std::int64_t boottime_ns = clock_ns(CLOCK_BOOTTIME);
    return sleep_.slept_ns(boottime_ns, clock_ns(CLOCK_MONOTONIC));
  }

  /// Converts a time of CLOCK_MONOTONIC to ticks. The caller holds lock_.
  std::uint64_t ticks_at(std::int64_t monotonic_ns, const clock_anchor& now) const noexcept {
    __extension__ using wide = __int128;
    if (!hardware_) return static_cast<std::uint64_t>(monotonic_ns);
    const auto rate = static_cast<std::int64_t>(map_.current().rate);
    if (rate == 0) return now.ticks;
    const wide distance = wide{monotonic_ns - now.elapsed_ns} * (wide{1} << 32) / rate;
    return now.ticks + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
  }

  /// Reads the ticks, CLOCK_MONOTONIC and CLOCK_REALTIME at nearly the same moment: reads them five
  /// times and returns the reading that took the least time.
  clock_anchor read_anchor() const noexcept {
    clock_anchor best{};
    std::uint64_t tightest = ~std::uint64_t{0};
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t before = ticks();
      const std::int64_t realtime_ns = clock_ns(CLOCK_REALTIME);
      const std::uint64_t between = ticks();
      const std::int64_t elapsed_ns = clock_ns(CLOCK_MONOTONIC);
      const std::uint64_t after = ticks();
      if (after - before >= tightest) continue;
      tightest = after - before;
      best = {before + (between - before) / 2, elapsed_ns, realtime_ns};
    }
    return best;
  }

  const bool hardware_;
  mutex lock_;
  clock_map map_{};
  sleep_watch sleep_;
  std::atomic<std::int64_t> last_tie_ns_{0};
  std::atomic<std::uint32_t> ties_{0};
  std::int64_t forked_realtime_ns_ = 0;  ///< CLOCK_REALTIME at the last fork
  std::int64_t forked_monotonic_ns_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_SESSION_CLOCK_HPP
