// Reads the processor's counter, which is the fastest clock for the times of records.
#ifndef LOTUS_BASE_TICKS_HPP
#define LOTUS_BASE_TICKS_HPP

#include <cstdint>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the processor's counter: the TSC on x86-64, cntvct_el0 on aarch64. Takes about 10 ns and
/// no system call.
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t hardware_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  std::uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_TICKS_HPP
