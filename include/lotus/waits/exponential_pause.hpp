// Provides random, exponentially distributed pauses between samples.
#ifndef LOTUS_WAITS_EXPONENTIAL_PAUSE_HPP
#define LOTUS_WAITS_EXPONENTIAL_PAUSE_HPP

#include <cstdint>

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Random numbers by xorshift64* (Vigna, An experimental exploration of Marsaglia's xorshift
/// generators, 2016). Not thread-safe.
class random_bits {
 public:
  void seed(std::uint64_t from) noexcept { state_ = from | 1; }
  std::uint64_t next() noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  /// Returns a random number from 0 to limit - 1; `limit` must not be 0.
  std::uint32_t below(std::uint32_t limit) noexcept {
    return static_cast<std::uint32_t>((next() >> 32) * limit >> 32);
  }

 private:
  std::uint64_t state_ = 1;
};

/// Returns an exponentially distributed pause in ns. With such pauses, the share of samples that
/// find a thread in a state is the share of time that the thread spends in that state, even if the
/// thread works periodically (Wolff, Poisson arrivals see time averages, 1982). Computed without
/// libm, which the program may not link.
inline std::uint64_t exponential_ns(std::uint64_t mean_ns, random_bits& bits) noexcept {
  // The pause is -mean * ln u, for a random u with 0 < u < 1. Let u = m * 2^-k with 1 <= m < 2.
  // Then -ln u = k ln 2 - ln m.
  const std::uint64_t u = bits.next() | 1;
  const int k = __builtin_clzll(u) + 1;
  const double x =
      static_cast<double>((u << (k - 1)) & INT64_MAX) / 9223372036854775808.0;  // x = m - 1
  // ln(1 + x), exact to 1e-5: Abramowitz and Stegun, Handbook of Mathematical Functions, 4.1.43.
  const double ln_m =
      x * (0.99949556 + x * (-0.49190896 + x * (0.28947478 + x * (-0.13606275 + x * 0.03215845))));
  const double pause = static_cast<double>(mean_ns) * (k * 0.69314718 - ln_m);
  return pause > 1 ? static_cast<std::uint64_t>(pause) : 1;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_EXPONENTIAL_PAUSE_HPP
