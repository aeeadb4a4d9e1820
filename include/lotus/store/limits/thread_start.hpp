// Determines when the calling thread was started.
#ifndef LOTUS_STORE_LIMITS_THREAD_START_HPP
#define LOTUS_STORE_LIMITS_THREAD_START_HPP

#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "lotus/base/clock.hpp"
#include "lotus/base/file.hpp"
#include "lotus/config.hpp"
#include "lotus/record/thread_ring.hpp"
#include "lotus/store/session_clock.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The time at which the calling thread started, as the kernel reports it, accurate to 10 ms; read
/// when it is first needed.
class thread_start {
 public:
  /// Returns whether the calling thread certainly started later than the time `ticks`.
  LOTUS_DETAIL_COLD bool is_after(std::uint64_t ticks, session_clock& clock) noexcept {
    if (!known_) find(clock);
    return static_cast<std::int64_t>(now_ - ticks) > 0 && now_ - ticks > age_ticks_;
  }

 private:
  void find(session_clock& clock) noexcept {
    known_ = true;
    now_ = now_ticks();
    age_ticks_ = UINT64_MAX;
    char text[1024];
    read_beginning("/proc/thread-self/stat", text);
    // The text is "tid (name) state ppid pgrp ...". The name may contain anything, so the fields
    // are counted from the last ')'; the 20th field after it is the start time.
    const char* at = std::strrchr(text, ')');
    for (int field = 0; at != nullptr && field < 20; ++field) at = std::strchr(at + 1, ' ');
    if (at == nullptr) return;
    const long long per_second = sysconf(_SC_CLK_TCK);
    if (per_second <= 0) return;
    // The kernel rounds the start time down, so the thread never seems younger than it is.
    const long long started_ns = std::strtoll(at, nullptr, 10) * (1'000'000'000 / per_second);
    const std::int64_t age_ns = clock_ns(CLOCK_BOOTTIME) - started_ns;
    if (age_ns >= 0) age_ticks_ = clock.ticks_in(age_ns).value_or(UINT64_MAX);
  }

  bool known_ = false;
  std::uint64_t now_ = 0;
  std::uint64_t age_ticks_ = 0;  ///< age of the thread, in ticks, at the time now_
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_THREAD_START_HPP
