// Provides the scopes and events that record the history of a batch (dispatch, preprocessing, wait,
// arrival and consumption), and loader_scope, which lets several loaders number their batches
// independently.
#ifndef LOTUS_BATCH_HPP
#define LOTUS_BATCH_HPP

#include <cstdint>
#include <string_view>

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
  if (LOTUS_DETAIL_UNLIKELY(this_cpu_watch.per_batch)) read_cpu(0, 0);
}

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

  /// @param tag  the tag with which the wait will be recorded, as far as it is known.
  void begin(record_tag tag = {event_kind::batch_wait, unknown_batch}) noexcept {
    if (is_recording()) look_at_batch();
    publish_wait();
    wait_.begin(tag);
  }
  /// Ends the current wait and records it as the wait for this batch.
  void end(std::uint64_t batch) noexcept {
    if (wait_.runs()) end(batch_tag(event_kind::batch_wait, batch));
  }
  void end(record_tag tag) noexcept {
    if (!wait_.runs()) return;
    look_at_batch();
    publish_end_of_wait();
    wait_.end(tag);
  }
  /// Ends the current wait without recording it.
  void forget() noexcept {
    if (!wait_.runs()) return;
    publish_end_of_wait();
    wait_.forget({event_kind::batch_wait, unknown_batch});
  }

 private:
  measured_span wait_;
};

}  // namespace detail

/// Scope in a worker around all the work that builds a batch; the log line is
/// "SBatchPreprocessed_i". If the number is known only later, or if there may be no batch, as at
/// the end of the data, leave the argument out:
///
///   lotus::batch_preprocessed batch;
///   Batch b = read_next();
///   b.empty() ? batch.discard() : batch.number(b.index);
///
/// The scope lasts from construction to the end of the block. Nothing is recorded without a number,
/// or after discard(). Errors: none thrown; a batch with a number of 2^56 or more is not recorded
/// but counted in dropped(). Thread safety: any thread; each object belongs to one thread.
class batch_preprocessed {
 public:
  [[nodiscard]] batch_preprocessed() noexcept {
    begin({detail::event_kind::batch_preprocessed, detail::unknown_batch});
  }
  /// @param batch  the batch's number in its epoch.
  [[nodiscard]] explicit batch_preprocessed(std::uint64_t batch) noexcept {
    if (!detail::is_recording()) return;
    tag_ = tag_of(batch);
    if (!tag_.empty()) begin(tag_);
  }
  batch_preprocessed(const batch_preprocessed&) = delete;
  batch_preprocessed& operator=(const batch_preprocessed&) = delete;
  ~batch_preprocessed() {
    if (tag_.empty()) discard();
    if (!span_.runs()) return;
    detail::look_at_batch();
    span_.end(tag_);
  }

  /// Sets the number of the batch that is being built. If it is called again, the last number
  /// counts.
  void number(std::uint64_t batch) noexcept {
    if (span_.runs()) tag_ = tag_of(batch);
  }
  /// Ends the scope here and records nothing, because there is no batch.
  void discard() noexcept {
    span_.forget({detail::event_kind::batch_preprocessed, detail::unknown_batch});
  }

 private:
  static detail::record_tag tag_of(std::uint64_t batch) noexcept {
    return detail::batch_tag(detail::event_kind::batch_preprocessed, batch);
  }
  void begin(detail::record_tag tag) noexcept {
    if (detail::is_recording()) detail::look_at_batch();
    span_.begin(tag);
  }

  detail::measured_span span_;
  /// Empty as long as the number is unknown.
  detail::record_tag tag_;
};

/// Records that the consumer has received batch `i` and begins its step, as the log line
/// "SBatchConsumed_i". Call it in the consumer, right after the wait.
/// @param batch  the batch's number in its epoch; a number of 2^56 or more is not recorded but
/// counted in dropped(). Errors: none thrown. Thread safety: any thread.
LOTUS_DETAIL_ALWAYS_INLINE void batch_consumed(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_consumed>(batch);
}

/// Records the consumer's wait for a batch, as the log line "SBatchWait_i":
///
///   lotus::batch_wait wait;
///   Batch b = loader.next();
///   wait.consumed(b.index);
///
/// The wait lasts from construction to consumed(). Without that call, as at the end of the data,
/// nothing is recorded, except if the number was given at once: then the wait lasts to the end of
/// the block, and batch_consumed() says when the step begins. While the wait lasts, `lotus-tool
/// top` shows it, and it can trigger a snapshot (see options::snapshot_when_wait_ms). Errors: none
/// thrown; a wait for a batch with a number of 2^56 or more is not recorded but counted in
/// dropped(). Thread safety: any thread; each object belongs to one thread.
class batch_wait {
 public:
  [[nodiscard]] batch_wait() noexcept { wait_.begin(); }
  /// @param batch  the batch's number in its epoch.
  [[nodiscard]] explicit batch_wait(std::uint64_t batch) noexcept {
    if (!detail::is_recording()) return;
    tag_ = detail::batch_tag(detail::event_kind::batch_wait, batch);
    if (!tag_.empty()) wait_.begin(tag_);
  }
  batch_wait(const batch_wait&) = delete;
  batch_wait& operator=(const batch_wait&) = delete;
  ~batch_wait() {
    if (!tag_.empty()) wait_.end(tag_);
  }

  /// Ends the wait, as that for this batch, and calls batch_consumed(). Call this function right
  /// after the batch has arrived: the code from here to the next wait is the consumer's step.
  void consumed(std::uint64_t batch) noexcept {
    wait_.end(batch);
    batch_consumed(batch);
  }
  /// Ends the wait here and records nothing, because no batch came.
  void discard() noexcept { wait_.forget(); }

 private:
  detail::repeated_wait wait_;
  /// Empty unless the number was given at once.
  detail::record_tag tag_;
};

/// Records that batch `i` arrived while the consumer waited for another batch, and was buffered.
/// The log line is "SBatchWait_i" with a duration of exactly 1000 ns, by which readers recognize
/// such an arrival. The parameter, errors and thread safety are those of batch_consumed().
LOTUS_DETAIL_ALWAYS_INLINE void batch_arrived(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_arrived>(batch);
}

/// Records that the consumer dispatched batch `i` to a worker, as the log line "SBatchQueued_i".
/// The parameter, errors and thread safety are those of batch_consumed().
LOTUS_DETAIL_ALWAYS_INLINE void batch_queued(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_queued>(batch);
}

namespace detail {

/// Assigns this thread's later records to the loader whose name has the id `loader`. Returns the id
/// of the previous loader's name.
LOTUS_DETAIL_PER_MODULE inline std::uint32_t enter_loader(std::uint32_t loader) noexcept {
  return join_session(true).enter_loader(loader);
}

LOTUS_DETAIL_PER_MODULE inline std::uint32_t loader_of(std::string_view name) noexcept {
  if (!LOTUS_SUPPORTED || name.empty()) return 0;
  return static_cast<std::uint32_t>(operation_tag(name).value());
}

}  // namespace detail

/// Assigns the batches, stages and operations of this thread to a loader until the end of the
/// block. lotus-tool treats each loader as a pipeline of its own, whose logs are in a subfolder
/// with the loader's name. Processes that this thread forks meanwhile belong to the loader too, but
/// threads that this thread starts do not. A loader_scope may be nested in another. Cost: a few
/// system calls, so use one for the lifetime of a worker or for an epoch, not for each batch.
/// Errors: none thrown. Thread safety: any thread; each object belongs to one thread.
class loader_scope {
 public:
  /// @param name  name of the loader, copied; empty: the default loader, as if there were no
  /// loader_scope.
  [[nodiscard]] explicit loader_scope(std::string_view name) noexcept
      : before_{detail::enter_loader(detail::loader_of(name))} {}
  loader_scope(const loader_scope&) = delete;
  loader_scope& operator=(const loader_scope&) = delete;
  ~loader_scope() { detail::enter_loader(before_); }

 private:
  std::uint32_t before_;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BATCH_HPP
