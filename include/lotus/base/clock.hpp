// Reads clock ticks, and converts them to nanoseconds since the Unix epoch.
#ifndef LOTUS_BASE_CLOCK_HPP
#define LOTUS_BASE_CLOCK_HPP

#include <fcntl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "lotus/base/descriptor.hpp"
#include "lotus/base/ticks.hpp"
#include "lotus/config.hpp"

#if defined(__x86_64__)
  #include <cpuid.h>
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline std::int64_t clock_ns(clockid_t id) noexcept {
  timespec t{};
  clock_gettime(id, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

/// Whether the program may read clocks. If it has forbidden itself to read the TSC (PR_SET_TSC),
/// then even clock_gettime(2) raises SIGSEGV.
inline bool may_read_clocks() noexcept {
#if defined(__x86_64__)
  int access = PR_TSC_ENABLE;
  return prctl(PR_GET_TSC, &access) != 0 || access != PR_TSC_SIGSEGV;
#else
  return true;
#endif
}

/// Whether hardware_ticks() advances at the same constant rate on every core: on x86-64 if CPUID's
/// invariant-TSC bit is set (Intel SDM 17.17.1, AMD APM 3 E.4.7) and the kernel has not marked the
/// TSC unstable; on aarch64 always (Arm ARM D11).
inline bool hardware_ticks_invariant() noexcept {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) == 0 || (edx & (1U << 8)) == 0) return false;
  const int fd = open_at_high_fd(
      AT_FDCWD, "/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY);
  if (fd < 0) return true;
  char sources[256] = {};
  const ssize_t got = read(fd, sources, sizeof(sources) - 1);
  close(fd);
  // kvm-clock and Hyper-V's clock are derived from the TSC, so with them the kernel trusts the TSC.
  return got <= 0 || std::strstr(sources, "tsc") != nullptr ||
         std::strstr(sources, "kvm-clock") != nullptr || std::strstr(sources, "hyperv") != nullptr;
#else
  return true;
#endif
}

/// One moment, read on three clocks. Anchors relate ticks to the time of day.
struct clock_anchor {
  std::uint64_t ticks;
  /// CLOCK_MONOTONIC, which never jumps, and stops while the machine is suspended.
  std::int64_t elapsed_ns;
  std::int64_t realtime_ns;
};

/// Detects that the machine was suspended (slept): then CLOCK_BOOTTIME has advanced by more than
/// CLOCK_MONOTONIC.
class sleep_watch {
 public:
  /// @param boottime_ns, monotonic_ns  readings of CLOCK_BOOTTIME and CLOCK_MONOTONIC.
  ///   CLOCK_BOOTTIME must be read first: then a pause between the two readings makes their
  ///   difference smaller, never larger.
  /// @return how long the machine was suspended since the last call, in ns, or 0. The result of the
  ///   first call has no meaning.
  std::int64_t slept_ns(std::int64_t boottime_ns, std::int64_t monotonic_ns) noexcept {
    const std::int64_t slept_ns = boottime_ns - monotonic_ns - asleep_ns_;
    if (slept_ns <= 0) return 0;
    asleep_ns_ += slept_ns;
    return slept_ns > min_ns ? slept_ns : 0;
  }

 private:
  static constexpr std::int64_t min_ns = 1'000'000;

  std::int64_t asleep_ns_ = INT64_MIN / 2;
};

/// A segment of the map from ticks to time: time = start_ns + (ticks - start_ticks) * rate.
struct clock_segment {
  std::uint64_t start_ticks;
  std::int64_t start_ns;  ///< time at start_ticks, in ns since the Unix epoch
  std::uint64_t rate;     ///< nanoseconds per tick, multiplied by 2^32
  /// Sum of all jumps of the map so far, such as those after forward steps of the wall clock;
  /// start_ns already contains them.
  std::int64_t jumped_ns;

  std::int64_t to_ns(std::uint64_t ticks) const noexcept {
    __extension__ using wide = __int128;
    const auto distance = static_cast<std::int64_t>(ticks - start_ticks);
    // The arithmetic is unsigned, because a damaged ring file's values could overflow signed
    // numbers.
    return static_cast<std::int64_t>(
        static_cast<std::uint64_t>(start_ns) +
        static_cast<std::uint64_t>((wide{distance} * static_cast<std::int64_t>(rate)) >> 32));
  }
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Maps ticks to nanoseconds since the Unix epoch, as a continuous line of straight segments. So
/// spans that share a clock reading meet exactly, even if they are converted to text at different
/// times.
///
/// While CLOCK_REALTIME only drifts, the map follows it: each call of tie() changes the slope, so
/// that the line approaches the wall clock. If CLOCK_REALTIME is stepped forward, later times jump
/// ahead; if it is stepped back, times continue as before, so that starts stay in order. Durations
/// of spans never contain such a step.
///
/// While the machine is suspended (sleeps), the hardware counter may continue or stop. So no rate
/// is computed across a sleep, and the line restarts at the wall clock when the machine wakes. A
/// duration across a sleep is the time that the counter counted.
///
/// Trivially copyable, so that it can be stored in a ring file. Thread safety: none.
class clock_map {
 public:
  /// If the map's time and the wall clock differ by more than this, the difference counts as a step
  /// of the wall clock.
  static constexpr std::int64_t step_ns = 1'000'000;

  /// Begins the map at the anchor `first`. The anchor `second`, read a millisecond or more later,
  /// determines the first rate.
  void begin(const clock_anchor& first, const clock_anchor& second) noexcept {
    segments_[0] = {first.ticks, first.realtime_ns, rate_between(first, second), 0};
    count_ = 1;
    anchors_[0] = first;
    anchor_count_ = 1;
    held_back_ns_ = 0;
  }

  /// Adds an anchor (one moment on several clocks) to the map. Returns the step of the wall clock
  /// in ns if one is detected, otherwise 0.
  /// @param slept_ns  how long the machine was suspended since the previous anchor.
  std::int64_t tie(const clock_anchor& now, std::int64_t slept_ns = 0) noexcept {
    const clock_segment last = current();
    if (now.ticks <= last.start_ticks) return 0;
    if (slept_ns > 0) return tie_after_sleep(now, slept_ns);
    const std::int64_t target_ns = now.realtime_ns + held_back_ns_;
    const std::int64_t here_ns = last.to_ns(now.ticks);
    const std::int64_t error_ns = target_ns - here_ns;
    const std::uint64_t rate = rate_between(oldest_anchor(), now);
    clock_segment next{now.ticks, here_ns, rate, last.jumped_ns};
    std::int64_t stepped_ns = 0;
    if (error_ns > step_ns) {
      next.start_ns += error_ns;
      next.jumped_ns += error_ns;
      stepped_ns = error_ns;
    } else if (error_ns < -step_ns) {
      held_back_ns_ -= error_ns;
      stepped_ns = error_ns;
    } else {
      next.rate = bent_rate(rate, error_ns, here_ns - last.start_ns);
    }
    remember(now);
    append(next);
    return stepped_ns;
  }

  /// Adapts the map to another CLOCK_MONOTONIC, in which the same moments have values that are
  /// larger by `ns`.
  /// @param ticks_too  whether ticks are ns of CLOCK_MONOTONIC.
  void shift_elapsed(std::int64_t ns, bool ticks_too) noexcept {
    const std::uint64_t ticks = ticks_too ? static_cast<std::uint64_t>(ns) : 0;
    for (clock_anchor& a : anchors_) {
      a.elapsed_ns += ns;
      a.ticks += ticks;
    }
    for (std::uint32_t i = 0; i < count_; ++i) segments_[i].start_ticks += ticks;
  }

  const clock_segment& current() const noexcept { return segments_[count_ - 1]; }

  /// Returns the segment that contains `ticks`; the first segment if `ticks` is older than the map.
  const clock_segment& at(std::uint64_t ticks) const noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = count_;
    while (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      (segments_[middle].start_ticks <= ticks ? low : high) = middle;
    }
    return segments_[low];
  }

  /// Whether the number of segments is in the allowed range. It may not be if the map comes from a
  /// damaged file.
  bool valid() const noexcept { return count_ >= 1 && count_ <= capacity; }

 private:
  static constexpr std::uint32_t capacity = 512;
  static constexpr std::uint32_t anchor_capacity = 16;

  /// Begins a new segment of the conversion from ticks to time after the machine was suspended. It
  /// begins at the wall clock's time, and has the previous rate, because no new rate is known yet.
  std::int64_t tie_after_sleep(const clock_anchor& now, std::int64_t slept_ns) noexcept {
    const clock_segment last = current();
    const std::uint64_t rate =
        anchor_count_ > 1 ? rate_between(oldest_anchor(), newest_anchor()) : last.rate;
    const std::int64_t here_ns = last.to_ns(now.ticks);
    const std::int64_t awake_ns = now.elapsed_ns - newest_anchor().elapsed_ns;
    const bool counter_stopped =
        here_ns - last.to_ns(newest_anchor().ticks) - awake_ns < slept_ns / 2;
    anchor_count_ = 0;
    remember(now);
    const std::int64_t woken_ns = counter_stopped ? here_ns + slept_ns : here_ns;
    const std::int64_t stepped_ns = now.realtime_ns + held_back_ns_ - woken_ns;
    // If the counter ran while the machine was suspended, a small error of its rate has added up
    // over that time, so a difference up to this limit does not show that the wall clock was
    // stepped.
    const std::int64_t inexact_ns = slept_ns / 1000 + step_ns;
    const bool stepped = stepped_ns > inexact_ns || stepped_ns < -inexact_ns;
    if (stepped && stepped_ns < 0) held_back_ns_ -= stepped_ns;
    const std::int64_t jump_ns = now.realtime_ns + held_back_ns_ - here_ns;
    append({now.ticks, here_ns + jump_ns, rate, last.jumped_ns + jump_ns});
    return stepped ? stepped_ns : 0;
  }

  /// Returns the rate between two anchors, computed from elapsed_ns because that clock never jumps.
  static std::uint64_t rate_between(const clock_anchor& a, const clock_anchor& b) noexcept {
    __extension__ using wide = unsigned __int128;
    if (b.ticks <= a.ticks || b.elapsed_ns <= a.elapsed_ns) return std::uint64_t{1} << 32;
    const auto elapsed_ns = static_cast<std::uint64_t>(b.elapsed_ns - a.elapsed_ns);
    return static_cast<std::uint64_t>((wide{elapsed_ns} << 32) / (b.ticks - a.ticks));
  }

  /// Returns a rate that corrects the map's error `error_ns` within the next `since_ns`, or within
  /// 5 ms if that is longer. The result differs from `rate` by at most 1000 ppm.
  static std::uint64_t bent_rate(std::uint64_t rate, std::int64_t error_ns,
                                 std::int64_t since_ns) noexcept {
    const std::int64_t span_ns = since_ns > 5'000'000 ? since_ns : 5'000'000;
    std::int64_t parts_per_billion = error_ns * 1'000'000'000 / span_ns;
    if (parts_per_billion > 1'000'000) parts_per_billion = 1'000'000;
    if (parts_per_billion < -1'000'000) parts_per_billion = -1'000'000;
    __extension__ using wide = __int128;
    const auto straight = static_cast<std::int64_t>(rate);
    return static_cast<std::uint64_t>(
        straight + static_cast<std::int64_t>(wide{straight} * parts_per_billion / 1'000'000'000));
  }

  const clock_anchor& oldest_anchor() const noexcept {
    return anchors_[anchor_count_ <= anchor_capacity ? 0 : anchor_count_ % anchor_capacity];
  }

  const clock_anchor& newest_anchor() const noexcept {
    return anchors_[(anchor_count_ - 1) % anchor_capacity];
  }

  void remember(const clock_anchor& a) noexcept {
    anchors_[anchor_count_ % anchor_capacity] = a;
    ++anchor_count_;
  }

  void append(const clock_segment& s) noexcept {
    if (count_ == capacity) thin_out();
    segments_[count_++] = s;
  }

  /// Removes every second segment of the older three quarters of the map, to free space for new
  /// ones. The map still begins at the start of the run, but its older part is less exact. Segments
  /// next to a step of the wall clock are not removed.
  void thin_out() noexcept {
    std::uint32_t kept = 1;
    for (std::uint32_t i = 1; i < capacity; ++i) {
      const bool step = segments_[i].jumped_ns != segments_[i - 1].jumped_ns ||
                        (i + 1 < capacity && segments_[i + 1].jumped_ns != segments_[i].jumped_ns);
      if (i % 2 == 0 || i >= capacity / 4 * 3 || step) segments_[kept++] = segments_[i];
    }
    for (std::uint32_t i = 0; i + 1 < kept; ++i) straighten(segments_[i], segments_[i + 1]);
    // If nothing could be removed, because all segments are next to steps, the oldest one is
    // removed.
    if (kept == capacity) std::memmove(segments_, segments_ + 1, --kept * sizeof(clock_segment));
    count_ = kept;
  }

  /// Adapts the rate of the segment `s` after the segment between `s` and `next` was removed, so
  /// that `s` ends where `next` begins.
  static void straighten(clock_segment& s, const clock_segment& next) noexcept {
    if (s.jumped_ns != next.jumped_ns) return;
    __extension__ using wide = unsigned __int128;
    const auto rise_ns = static_cast<std::uint64_t>(next.start_ns - s.start_ns);
    s.rate = static_cast<std::uint64_t>((wide{rise_ns} << 32) / (next.start_ticks - s.start_ticks));
  }

  clock_segment segments_[capacity];
  std::uint32_t count_;
  clock_anchor anchors_[anchor_capacity];
  std::uint32_t anchor_count_;
  std::int64_t held_back_ns_;  ///< total of the wall clock's backward steps since begin()
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_CLOCK_HPP
