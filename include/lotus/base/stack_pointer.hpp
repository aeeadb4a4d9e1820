// Reads this thread's stack pointer.
#ifndef LOTUS_BASE_STACK_POINTER_HPP
#define LOTUS_BASE_STACK_POINTER_HPP

#include <cstdint>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the stack pointer, which is that of the calling function, because this function is
/// always inlined. The result is never 0. Costs one move instruction. __builtin_frame_address(0)
/// would require a frame pointer.
LOTUS_DETAIL_ALWAYS_INLINE std::uintptr_t stack_pointer() noexcept {
  std::uintptr_t at;
#if defined(__x86_64__)
  __asm__ volatile("mov %%rsp, %0" : "=r"(at));
#else
  __asm__ volatile("mov %0, sp" : "=r"(at));
#endif
  return at;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_STACK_POINTER_HPP
