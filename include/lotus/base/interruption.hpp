// Finds out whether code that a signal handler interrupted will continue when the handler returns.
#ifndef LOTUS_BASE_INTERRUPTION_HPP
#define LOTUS_BASE_INTERRUPTION_HPP

#include <signal.h>
#include <unwind.h>

#include <cstdint>

#include "lotus/base/stack_pointer.hpp"
#include "lotus/config.hpp"

#if defined(__SANITIZE_THREAD__)
  #define LOTUS_DETAIL_THREAD_SANITIZER
#elif defined(__has_feature)
  #if __has_feature(thread_sanitizer)
    #define LOTUS_DETAIL_THREAD_SANITIZER
  #endif
#endif

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Walks up this thread's stack to the frame at the address `place`, to find out whether a signal
/// handler interrupted the code there.
struct stack_walk {
  /// Tolerance, in bytes, in the comparison of stack addresses: when it was interrupted, the code
  /// at `place` may have been in a small function that it called, or about to return.
  static constexpr std::uintptr_t near_bytes = 4096;

  /// Minimum size in bytes of the frame that the kernel puts on the stack of a signal handler.
  static constexpr std::uintptr_t signal_frame_bytes = 1024;

  std::uintptr_t place;
  /// Bounds of an alternate signal stack whose frames are skipped; both 0 if none are skipped.
  std::uintptr_t other_begin;
  std::uintptr_t other_end;
  bool from_signal = false;  ///< whether a signal interrupted the previous frame
  bool interrupted = false;  ///< result: a running handler interrupted the code at `place`
  /// result: the walk has passed `place`, and no running signal handler interrupted the code there
  bool passed = false;

  static _Unwind_Reason_Code visit(_Unwind_Context* frame, void* of) noexcept {
    auto& walk = *static_cast<stack_walk*>(of);
    // libgcc sets the flag before_instruction for the frame that a signal interrupted; LLVM sets it
    // for the frame called by that frame.
    int before_instruction = 0;
    static_cast<void>(_Unwind_GetIPInfo(frame, &before_instruction));
    const bool may_be_interrupted = before_instruction != 0 || walk.from_signal;
    walk.from_signal = before_instruction != 0;
    const auto at = static_cast<std::uintptr_t>(_Unwind_GetCFA(frame));
    if (at >= walk.other_begin && at < walk.other_end) return _URC_NO_REASON;
    const std::uintptr_t distance = at > walk.place ? at - walk.place : walk.place - at;
    walk.interrupted = may_be_interrupted && distance < near_bytes;
    walk.passed = !walk.interrupted && at > walk.place && distance >= near_bytes;
    return walk.interrupted || walk.passed ? _URC_END_OF_STACK : _URC_NO_REASON;
  }
};

/// Whether a signal handler that is running on this thread interrupted the code at `place`, so that
/// this code continues when the handler returns. If not, a handler has abandoned that code by
/// siglongjmp. If the stack cannot be walked, because functions have no unwind tables, returns
/// false only if a handler would run further down the stack than the caller.
/// @param place  result of stack_pointer() in the code that may have been interrupted.
LOTUS_DETAIL_COLD inline bool is_interrupted(std::uintptr_t place) noexcept {
#ifdef LOTUS_DETAIL_THREAD_SANITIZER
  // ThreadSanitizer calls signal handlers as plain functions, so the stack does not show which code
  // a signal interrupted. Therefore the code at `place` counts as interrupted.
  return place != 0;
#else
  stack_t other{};
  const bool known = sigaltstack(nullptr, &other) == 0 && (other.ss_flags & SS_DISABLE) == 0;
  const auto begin = known ? reinterpret_cast<std::uintptr_t>(other.ss_sp) : 0;
  const auto end = known ? begin + other.ss_size : 0;
  const bool is_there = place >= begin && place < end;
  const bool runs_on_other_stack = known && (other.ss_flags & SS_ONSTACK) != 0;
  if (is_there && !runs_on_other_stack) return false;
  stack_walk walk{place, is_there ? 0 : begin, is_there ? 0 : end};
  _Unwind_Backtrace(stack_walk::visit, &walk);
  if (walk.interrupted || walk.passed) return walk.interrupted;
  return is_there || runs_on_other_stack ||
         stack_pointer() + stack_walk::signal_frame_bytes <= place;
#endif
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_INTERRUPTION_HPP
