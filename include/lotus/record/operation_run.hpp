// A run of operations that share clock reads, for compose.hpp.
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

/// A run of operations, each of which begins when the previous one ends. Logs each operation when
/// it ends, and "STransform" for all of them when the run ends, also by an exception.
class operation_run {
 public:
  explicit operation_run(record_tag whole) noexcept : whole_{whole} {
    if (!is_recording()) return;
    annotated_ = recording_mode() == recording::annotated;
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_annotation(whole_);
    look_at_cpu(now_ticks);
    first_ticks_ = last_ticks_ = now_ticks();
  }
  operation_run(const operation_run&) = delete;
  operation_run& operator=(const operation_run&) = delete;

  /// Sets the operation that runs now. If it ends by an exception, it is logged up to that point.
  LOTUS_DETAIL_ALWAYS_INLINE void running(record_tag tag) noexcept {
    running_ = tag;
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_annotation(tag);
  }

  LOTUS_DETAIL_ALWAYS_INLINE void ended(record_tag tag) noexcept {
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) end_part(tag);
    running_ = {};
    if (LOTUS_DETAIL_UNLIKELY(last_ticks_ == 0)) return;
    const std::uint64_t now = now_ticks();
    look_at_cpu([now] { return now; });
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

  /// The current operation gets its name only when it ends; see laps.
  void nameless() noexcept {
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_nameless();
  }

 private:
  /// Needed because equal clock readings do not prove that nothing ran: aarch64's counter may run
  /// at only 24 MHz.
  static constexpr record_tag nothing_yet{event_kind::none, 1};

  LOTUS_DETAIL_RARE void begin_nameless() noexcept;
  LOTUS_DETAIL_RARE void end_part(record_tag tag) noexcept;
  /// Called when an operation throws, or if the run ends before its first operation.
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
