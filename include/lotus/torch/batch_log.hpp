// What a data loader logs of its batches: by who makes them, by who consumes them.
#ifndef LOTUS_TORCH_BATCH_LOG_HPP
#define LOTUS_TORCH_BATCH_LOG_HPP

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "lotus/batch.hpp"
#include "lotus/config.hpp"
#include "lotus/process.hpp"
#include "lotus/record.hpp"
#include "lotus/thread.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace torch::detail {

/// Logs from here to the end of the block, also when that is left by an exception, unless it turns
/// out that there was nothing to log. Thread safety: belongs to one thread.
class tagged_span {
 public:
  explicit tagged_span(lotus::detail::record_tag tag) noexcept {
    if (!lotus::detail::is_recording()) return;
    tag_ = tag;
    begin_ticks_ = lotus::detail::now_ticks();
  }
  tagged_span(const tagged_span&) = delete;
  tagged_span& operator=(const tagged_span&) = delete;
  ~tagged_span() {
    if (tag_.empty() || !lotus::detail::is_recording()) return;
    lotus::detail::push(begin_ticks_, lotus::detail::now_ticks(), tag_);
  }

  void cancel() noexcept { tag_ = {}; }

 private:
  std::uint64_t begin_ticks_ = 0;
  lotus::detail::record_tag tag_;
};

inline lotus::detail::record_tag batch_tag(lotus::detail::event_kind kind, std::size_t batch) {
  return {kind, static_cast<std::uint64_t>(batch)};
}

/// The consumer's side of the batches of one loader. Thread safety: the consumer's thread only.
class consumer_log {
 public:
  /// @param every_request_yields  whether each request ends in a batch or an exception. Where one
  ///   may come back empty (a stateful dataset's end), it is logged as queued when its batch comes.
  explicit consumer_log(bool every_request_yields) noexcept
      : every_request_yields_{every_request_yields} {}

  void begin_epoch() noexcept {
    queued_ticks_.clear();
    wait_begin_ticks_ = 0;
  }

  void queued(std::size_t batch) {
    if (every_request_yields_) {
      batch_queued(batch);
    } else if (lotus::detail::is_recording()) {
      queued_ticks_[batch] = lotus::detail::now_ticks();
    }
  }

  /// A wait that yielded no batch, by an empty request or a timeout, goes on.
  void begin_wait() noexcept {
    if (wait_begin_ticks_ != 0 || !lotus::detail::is_recording()) return;
    wait_begin_ticks_ = lotus::detail::now_ticks();
  }

  /// The batch that was waited for is here.
  void end_wait(std::size_t batch) const noexcept {
    if (wait_begin_ticks_ == 0 || !lotus::detail::is_recording()) return;
    lotus::detail::push(wait_begin_ticks_, lotus::detail::now_ticks(),
                        batch_tag(lotus::detail::event_kind::batch_wait, batch));
  }

  /// Goes to the user now: the batch, or the exception that making it threw.
  void handed_over(std::size_t batch) noexcept {
    wait_begin_ticks_ = 0;
    batch_consumed(batch);
    const auto queued = queued_ticks_.find(batch);
    if (queued == queued_ticks_.end()) return;
    if (lotus::detail::is_recording()) {
      lotus::detail::push(queued->second, queued->second,
                          batch_tag(lotus::detail::event_kind::batch_queued, batch));
    }
    queued_ticks_.erase(queued);
  }

  /// The request was answered without a batch.
  void yielded_nothing(std::size_t batch) noexcept { queued_ticks_.erase(batch); }

 private:
  bool every_request_yields_;
  std::uint64_t wait_begin_ticks_ = 0;  ///< 0: nothing is waited for
  std::unordered_map<std::size_t, std::uint64_t> queued_ticks_;
};

}  // namespace torch::detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_TORCH_BATCH_LOG_HPP
