// Records the history of batches: preprocessed and wait (spans), arrived, consumed, queued
// (events).
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

/// Called before batches and waits begin and before they end, if threads cannot notice by
/// themselves that they were switched out. So a switch that is found at the end happened during the
/// batch, and one found at the beginning happened before it.
LOTUS_DETAIL_ALWAYS_INLINE void look_at_batch() noexcept {
  if (LOTUS_DETAIL_UNLIKELY(this_cpu_watch.per_batch)) read_cpu(now_ticks());
}

template <event_kind Kind>
class batch_span : span {
 public:
  /// @param batch  number of the batch in its epoch; one of 2^56 or more is dropped and counted.
  LOTUS_DETAIL_ALWAYS_INLINE explicit batch_span(std::uint64_t batch) noexcept
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

/// A wait that can begin again after it has ended.
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
  /// Ends the wait that has begun and logs it as the wait for this batch.
  void end(std::uint64_t batch) noexcept {
    if (!wait_.runs()) return;
    look_at_batch();
    publish_end_of_wait();
    wait_.end(tag_of(batch));
  }
  /// Ends the wait that has begun without logging it.
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

/// Scope in a worker around all the work that builds batch `i`: "SBatchPreprocessed_i".
using batch_preprocessed = detail::batch_span<detail::event_kind::batch_preprocessed>;

/// The same for a batch whose number is known only later, or if there may be no batch, as at the
/// end of the data:
///
///   lotus::preprocessed_batch p;
///   Batch b = read_next();
///   b.empty() ? p.discard() : p.number(b.index);
///
/// Lasts from construction to the end of the block. Nothing is logged without a number or after
/// discard(). Belongs to one thread.
class preprocessed_batch {
 public:
  preprocessed_batch() noexcept {
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

  /// Sets the number of the batch that is being preprocessed. The last call counts; a batch with a
  /// number of 2^56 or more is dropped and counted.
  void number(std::uint64_t batch) noexcept {
    number_ = batch;
    has_number_ = true;
  }
  /// There is no batch: ends the scope here and logs nothing.
  void discard() noexcept { span_.forget(tag()); }

 private:
  detail::record_tag tag() const noexcept {
    return detail::batch_tag(detail::event_kind::batch_preprocessed, number_);
  }

  detail::measured_span span_;
  std::uint64_t number_ = 0;
  bool has_number_ = false;
};

/// Scope in the consumer around its wait for batch `i`: "SBatchWait_i". During the wait it is
/// visible to lotus-tool top and options::snapshot_when_wait_ms.
class batch_wait : detail::published_wait, detail::batch_span<detail::event_kind::batch_wait> {
 public:
  /// @param batch  number of the batch in its epoch; one of 2^56 or more is dropped and counted.
  LOTUS_DETAIL_ALWAYS_INLINE explicit batch_wait(std::uint64_t batch) noexcept
      : batch_span{batch} {}
};

/// In the consumer, right after it received batch `i`; the step begins: "SBatchConsumed_i".
LOTUS_DETAIL_ALWAYS_INLINE void batch_consumed(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_consumed>(batch);
}

/// In the consumer, a wait whose batch is known only afterwards: lasts from construction to
/// consumed() or got(). Without either call nothing is logged, as at the end of the data. Belongs
/// to one thread.
class wait_for_batch {
 public:
  wait_for_batch() noexcept { wait_.begin(); }
  wait_for_batch(const wait_for_batch&) = delete;
  wait_for_batch& operator=(const wait_for_batch&) = delete;
  ~wait_for_batch() = default;

  /// Ends the wait, which was for this batch. Call it once; a number of 2^56 or more is dropped and
  /// counted.
  void got(std::uint64_t batch) noexcept { wait_.end(batch); }

  /// Calls got() and records that the consumer begins to use the batch: call it right after the
  /// batch has arrived. What follows, up to the next wait, is the step.
  void consumed(std::uint64_t batch) noexcept {
    got(batch);
    batch_consumed(batch);
  }

 private:
  detail::repeated_wait wait_;
};

/// In the consumer, when batch `i` arrives while the consumer waits for another one, and is
/// buffered: "SBatchWait_i" with the 1000-ns marker.
LOTUS_DETAIL_ALWAYS_INLINE void batch_arrived(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_arrived>(batch);
}

/// In the consumer, when batch `i` is dispatched to a worker: "SBatchQueued_i".
LOTUS_DETAIL_ALWAYS_INLINE void batch_queued(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_queued>(batch);
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BATCH_HPP
