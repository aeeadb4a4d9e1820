// Provides the scopes and events that record the history of a batch: dispatch, preprocessing, wait,
// arrival and consumption.
#ifndef LOTUS_BATCH_HPP
#define LOTUS_BATCH_HPP

#include <cstdint>

#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/scope.hpp"
#if LOTUS_SUPPORTED
  #include "lotus/record/published_wait.hpp"
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Reads this thread's CPU clocks if the kernel offers no cheaper way to notice that the thread was
/// switched out. Call this function before a batch or wait begins and again before it ends: the
/// time off the CPU between the two calls is recorded for that batch or wait.
LOTUS_DETAIL_ALWAYS_INLINE void look_at_batch() noexcept {
  if (LOTUS_DETAIL_UNLIKELY(this_cpu_watch.per_batch)) read_cpu(now_ticks(), 0);
}

template <event_kind Kind>
class batch_span : span {
 public:
  /// @param batch  the batch's number in its epoch. A number of 2^56 or more is not recorded but
  /// counted in dropped().
  [[nodiscard]] LOTUS_DETAIL_ALWAYS_INLINE explicit batch_span(std::uint64_t batch) noexcept
      : span{[batch] {
          look_at_batch();
          return batch_tag(Kind, batch);
        }} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~batch_span() { look_at_batch(); }
};

template <event_kind Kind>
LOTUS_DETAIL_ALWAYS_INLINE void batch_event(std::uint64_t batch) noexcept {
  if (!is_recording()) return;
  const std::uint64_t now = now_ticks();
  const record_tag tag = batch_tag(Kind, batch);
  if (LOTUS_DETAIL_LIKELY(!tag.empty())) push(now, now, tag);
}

/// Records the consumer's waits for batches, one after another. The next wait can begin when the
/// previous one has ended.
class repeated_wait {
 public:
  repeated_wait() noexcept = default;
  repeated_wait(const repeated_wait&) = delete;
  repeated_wait& operator=(const repeated_wait&) = delete;
  ~repeated_wait() { forget(); }

  void begin() noexcept {
    if (is_recording()) look_at_batch();
    publish_wait();
    wait_.begin(tag_of(0));
  }
  /// Ends the current wait and records it as the wait for this batch.
  void end(std::uint64_t batch) noexcept {
    if (!wait_.runs()) return;
    look_at_batch();
    publish_end_of_wait();
    wait_.end(tag_of(batch));
  }
  /// Ends the current wait without recording it.
  void forget() noexcept {
    if (!wait_.runs()) return;
    publish_end_of_wait();
    wait_.forget(tag_of(0));
  }

 private:
  static record_tag tag_of(std::uint64_t batch) noexcept {
    return batch_tag(event_kind::batch_wait, batch);
  }

  measured_span wait_;
};

}  // namespace detail

/// Scope in a worker around all the work that builds batch `i`; the log line is
/// "SBatchPreprocessed_i".
using batch_preprocessed = detail::batch_span<detail::event_kind::batch_preprocessed>;

/// Scope in a worker around all the work that builds a batch whose number is known only later. Use
/// it also if there may be no batch, for example at the end of the data:
///
///   lotus::preprocessed_batch p;
///   Batch b = read_next();
///   b.empty() ? p.discard() : p.number(b.index);
///
/// The scope lasts from construction to the end of the block. Nothing is recorded if number() is
/// not called, or after discard(). The object belongs to one thread.
class preprocessed_batch {
 public:
  [[nodiscard]] preprocessed_batch() noexcept {
    if (detail::is_recording()) detail::look_at_batch();
    span_.begin(tag());
  }
  preprocessed_batch(const preprocessed_batch&) = delete;
  preprocessed_batch& operator=(const preprocessed_batch&) = delete;
  ~preprocessed_batch() {
    if (!has_number_) discard();
    if (!span_.runs()) return;
    detail::look_at_batch();
    span_.end(tag());
  }

  /// Sets the number of the batch that is being built. If it is called again, the last number
  /// counts. A batch with a number of 2^56 or more is not recorded but counted in dropped().
  void number(std::uint64_t batch) noexcept {
    number_ = batch;
    has_number_ = true;
  }
  /// Ends the scope here and records nothing, because there is no batch.
  void discard() noexcept { span_.forget(tag()); }

 private:
  detail::record_tag tag() const noexcept {
    return detail::batch_tag(detail::event_kind::batch_preprocessed, number_);
  }

  detail::measured_span span_;
  std::uint64_t number_ = 0;
  bool has_number_ = false;
};

/// Scope in the consumer around its wait for batch `i`; the log line is "SBatchWait_i". While the
/// wait lasts, `lotus-tool top` shows it, and it can trigger a snapshot (see
/// options::snapshot_when_wait_ms).
class batch_wait : detail::published_wait, detail::batch_span<detail::event_kind::batch_wait> {
 public:
  /// @param batch  the batch's number in its epoch. A number of 2^56 or more is not recorded but
  /// counted in dropped().
  [[nodiscard]] LOTUS_DETAIL_ALWAYS_INLINE explicit batch_wait(std::uint64_t batch) noexcept
      : batch_span{batch} {}
};

/// Records that the consumer has received batch `i` and begins its step, as the log line
/// "SBatchConsumed_i". Call it in the consumer, right after the wait.
LOTUS_DETAIL_ALWAYS_INLINE void batch_consumed(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_consumed>(batch);
}

/// Records a wait in the consumer if the batch number is known only after the wait. The wait lasts
/// from construction to got() or consumed(). If neither is called, as at the end of the data,
/// nothing is recorded. The object belongs to one thread.
class wait_for_batch {
 public:
  [[nodiscard]] wait_for_batch() noexcept { wait_.begin(); }
  wait_for_batch(const wait_for_batch&) = delete;
  wait_for_batch& operator=(const wait_for_batch&) = delete;
  ~wait_for_batch() = default;

  /// Ends the wait and records it as the wait for this batch. Call it at most once. A number of
  /// 2^56 or more is not recorded but counted in dropped().
  void got(std::uint64_t batch) noexcept { wait_.end(batch); }

  /// Calls got() and batch_consumed(). Call this function right after the batch has arrived: the
  /// code from here to the next wait is the consumer's step.
  void consumed(std::uint64_t batch) noexcept {
    got(batch);
    batch_consumed(batch);
  }

 private:
  detail::repeated_wait wait_;
};

/// Records that batch `i` arrived while the consumer waited for another batch, and was buffered.
/// The log line is "SBatchWait_i" with a duration of exactly 1000 ns, by which readers recognize
/// such an arrival.
LOTUS_DETAIL_ALWAYS_INLINE void batch_arrived(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_arrived>(batch);
}

/// Records that the consumer dispatched batch `i` to a worker, as the log line "SBatchQueued_i".
LOTUS_DETAIL_ALWAYS_INLINE void batch_queued(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_queued>(batch);
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BATCH_HPP
