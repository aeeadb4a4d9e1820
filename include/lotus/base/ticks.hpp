// Reads the clock of the hot path.
#ifndef LOTUS_BASE_TICKS_HPP
#define LOTUS_BASE_TICKS_HPP

#include <cstdint>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the processor's own counter: the TSC, or cntvct_el0. About 10 ns, no system call.
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
