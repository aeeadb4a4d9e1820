// Provides async_scope, for operations that are suspended and later resumed, possibly on another
// thread, such as coroutines.
#ifndef LOTUS_ASYNC_SCOPE_HPP
#define LOTUS_ASYNC_SCOPE_HPP

#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/scope.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Numbers for this thread's asynchronous operations, reserved in advance: from `next` up to but
/// not including `end`. No other thread of the process uses them.
struct async_ids {
  std::uint32_t next = 0;
  std::uint32_t end = 0;
};
LOTUS_DETAIL_PER_MODULE inline thread_local async_ids this_async_ids;

LOTUS_DETAIL_RARE void take_async_ids() noexcept;

LOTUS_DETAIL_ALWAYS_INLINE std::uint32_t new_async_id() noexcept {
  async_ids& ids = this_async_ids;
  if (LOTUS_DETAIL_UNLIKELY(ids.next == ids.end)) take_async_ids();
  return ids.next++;
}

}  // namespace detail

/// Records one operation in segments. A segment lasts from construction or a resume() to the next
/// suspend() or the destruction; all of these calls may come from different threads. Each segment
/// becomes a line "S<name>" in the log of the thread on which the segment ends. lotus-tool joins
/// the segments:
///
///   lotus::async_scope load{"Load"};
///   load.suspend();                   // another thread may resume the operation from here on
///   co_await read(file);
///   load.resume();
///
/// Errors: none thrown. Thread safety: one thread at a time, like a coroutine's frame.
class async_scope {
 public:
  /// @param name  copied, so it must be valid only during this call.
  [[nodiscard]] explicit async_scope(std::string_view name) noexcept {
    if (!detail::is_recording()) return;
    tag_ = {detail::event_kind::async_segment,
            static_cast<std::uint32_t>(detail::operation_tag(name).value()),
            detail::new_async_id()};
    segment_.begin(tag_);
  }
  async_scope(const async_scope&) = delete;
  async_scope& operator=(const async_scope&) = delete;
  ~async_scope() { segment_.end(tag_); }

  /// Suspends the operation, if it is running. Call this function before another thread can resume
  /// the operation.
  void suspend() noexcept { segment_.end(tag_); }

  /// Resumes the operation on this thread; does nothing if the operation is already running.
  void resume() noexcept {
    if (!segment_.runs() && !tag_.empty()) segment_.begin(tag_);
  }

 private:
  detail::record_tag tag_;
  detail::measured_span segment_;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_ASYNC_SCOPE_HPP
