// Measures consecutive operations: the end of one operation and the start of the next share one
// reading of the clock. Used by compose.hpp.
#ifndef LOTUS_RECORD_OPERATION_RUN_HPP
#define LOTUS_RECORD_OPERATION_RUN_HPP

#include <cstdint>

#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#if LOTUS_SUPPORTED
  #include "lotus/record/hub.hpp"
  #include "lotus/record/thread_ring.hpp"
#else
  #include "lotus/record/unsupported.hpp"
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Measures consecutive operations, each of which begins when the previous one ends. Records each
/// operation when it ends. The destructor records a span with the tag `whole` that contains all
/// operations, even if an operation has thrown.
class operation_run {
 public:
  explicit operation_run(record_tag whole) noexcept : whole_{whole} {
    if (!is_recording()) return;
    annotated_ = recording_mode() == recording::annotated;
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_annotation(whole_);
    look_at_cpu();
    first_ticks_ = last_ticks_ = now_ticks();
  }
  operation_run(const operation_run&) = delete;
  operation_run& operator=(const operation_run&) = delete;

  /// Sets the tag of the operation that begins now. If the operation throws, it is recorded with
  /// this tag.
  LOTUS_DETAIL_ALWAYS_INLINE void running(record_tag tag) noexcept {
    running_ = tag;
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_annotation(tag);
  }

  LOTUS_DETAIL_ALWAYS_INLINE void ended(record_tag tag) noexcept {
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) end_part(tag);
    running_ = {};
    if (LOTUS_DETAIL_UNLIKELY(last_ticks_ == 0)) return;
    const std::uint64_t now = now_ticks();
    look_at_cpu(now, last_ticks_);
    if (!tag.empty()) push(last_ticks_, now, tag);
    last_ticks_ = now;
  }

  LOTUS_DETAIL_ALWAYS_INLINE ~operation_run() {
    if (LOTUS_DETAIL_UNLIKELY(!running_.empty())) end_early();
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) end_annotation(first_ticks_, whole_);
    if (first_ticks_ != 0 && !whole_.empty() && is_recording()) {
      push(first_ticks_, last_ticks_, whole_);
    }
  }

  /// Begins an operation whose name is known only at its end; see deprecated.hpp.
  void nameless() noexcept {
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_nameless();
  }

 private:
  /// The value of `running_` until the first operation begins, by which end_early() recognizes that
  /// there was no operation. Comparing first_ticks_ with last_ticks_ would not show this: both may
  /// be equal after a short operation, because the counter of aarch64 may run at only 24 MHz.
  static constexpr record_tag nothing_yet{event_kind::none, 1};

  LOTUS_DETAIL_RARE void begin_nameless() noexcept;
  LOTUS_DETAIL_RARE void end_part(record_tag tag) noexcept;
  /// Called by the destructor if an operation has thrown, or if there was no operation.
  LOTUS_DETAIL_RARE void end_early() noexcept;

  record_tag whole_;
  record_tag running_ = nothing_yet;
  std::uint64_t first_ticks_ = 0;
  std::uint64_t last_ticks_ = 0;
  bool annotated_ = false;
  bool nameless_ = false;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_OPERATION_RUN_HPP
