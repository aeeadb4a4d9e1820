// Provides the time without a system call, from a counter of ticks that was compared with the clock
// before.
#ifndef LOTUS_BASE_EXTRAPOLATED_CLOCK_HPP
#define LOTUS_BASE_EXTRAPOLATED_CLOCK_HPP

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "lotus/base/clock.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// CLOCK_MONOTONIC_RAW, which is not adjusted to other clocks. Extrapolates from the last reading,
/// because a reading may take as long as a system call if it is not in the CPU's caches. Not
/// thread-safe. Trivially destructible.
class extrapolated_clock {
 public:
  /// Whether ticks can be converted to ns.
  bool is_known() const noexcept { return ns_per_tick_ > 0; }
  std::int64_t to_ns(std::uint64_t ticks) const noexcept {
    return static_cast<std::int64_t>(static_cast<double>(ticks) * ns_per_tick_);
  }
  /// Call this function only if is_known().
  std::uint64_t to_ticks(double ns) const noexcept {
    return static_cast<std::uint64_t>(ns / ns_per_tick_);
  }

  /// Returns the time in ns.
  /// @param ticks  the present number of ticks.
  std::int64_t ns(std::uint64_t ticks) noexcept {
    const std::uint64_t passed = ticks - last_ticks_;
    // A small part of the time in which the rate was measured, so that the result is as exact as
    // the readings were.
    const bool near = passed < (last_ticks_ - first_ticks_) / 32;
    const std::int64_t passed_ns = to_ns(passed);
    return near && passed_ns < max_extrapolated_ns ? last_ns_ + passed_ns : read(ticks);
  }

  /// Like ns(), but always reads the clock.
  std::int64_t read(std::uint64_t ticks) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_RAW);
    const std::int64_t wrong_ns = now_ns - last_ns_ - to_ns(ticks - last_ticks_);
    // While the machine sleeps, the ticks may continue or stop.
    const bool jumped = is_known() && std::max(wrong_ns, -wrong_ns) > max_wrong_ns;
    if (first_ticks_ == 0 || jumped) {
      first_ticks_ = ticks;
      first_ns_ = now_ns;
      ns_per_tick_ = 0;
    }
    if (ticks > first_ticks_) {
      ns_per_tick_ =
          static_cast<double>(now_ns - first_ns_) / static_cast<double>(ticks - first_ticks_);
    }
    last_ticks_ = ticks;
    last_ns_ = now_ns;
    return now_ns;
  }

 private:
  static constexpr std::int64_t max_extrapolated_ns = 20'000'000;
  static constexpr std::int64_t max_wrong_ns = 1'000'000;

  // Two readings: the first one, or the first after the machine slept, and the last one.
  std::uint64_t first_ticks_ = 0;
  std::int64_t first_ns_ = 0;
  std::uint64_t last_ticks_ = 0;
  std::int64_t last_ns_ = 0;
  double ns_per_tick_ = 0;  ///< 0: unknown
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_EXTRAPOLATED_CLOCK_HPP
