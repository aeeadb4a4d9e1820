// What happens to batches: preprocessed and waited for (spans), arrived, consumed, queued (events).
#ifndef LOTUS_BATCH_HPP
#define LOTUS_BATCH_HPP

#include <cstdint>

#include "lotus/config.hpp"
#include "lotus/process.hpp"
#include "lotus/record.hpp"
#include "lotus/scope.hpp"
#include "lotus/thread.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

template <event_kind Kind>
class batch_span : span {
 public:
  /// @param batch  number of the batch in its epoch; below 2^56.
  LOTUS_DETAIL_ALWAYS_INLINE explicit batch_span(std::uint64_t batch) noexcept
      : span{[batch] {
          return record_tag{Kind, batch};
        }} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~batch_span() = default;
};

template <event_kind Kind>
LOTUS_DETAIL_ALWAYS_INLINE void batch_event(std::uint64_t batch) noexcept {
  if (!is_recording()) return;
  const std::uint64_t now = now_ticks();
  push(now, now, {Kind, batch});
}

}  // namespace detail

/// Scope in a worker around all that makes batch `i`: "SBatchPreprocessed_i".
using batch_preprocessed = detail::batch_span<detail::event_kind::batch_preprocessed>;

/// Scope in the consumer around its wait for batch `i`: "SBatchWait_i".
using batch_wait = detail::batch_span<detail::event_kind::batch_wait>;

/// In the consumer, when batch `i` came while another one was waited for, and is put aside:
/// "SBatchWait_i" with the 1000-ns marker.
LOTUS_DETAIL_ALWAYS_INLINE void batch_arrived(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_arrived>(batch);
}

/// In the consumer, when batch `i` is handed over: "SBatchConsumed_i".
LOTUS_DETAIL_ALWAYS_INLINE void batch_consumed(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_consumed>(batch);
}

/// In the consumer, when the work for batch `i` is given to a worker: "SBatchQueued_i".
LOTUS_DETAIL_ALWAYS_INLINE void batch_queued(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_queued>(batch);
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BATCH_HPP
