// Records the history of a data loader's batches, in its workers and in the consumer.
#ifndef LOTUS_TORCH_BATCH_LOG_HPP
#define LOTUS_TORCH_BATCH_LOG_HPP

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "lotus/batch.hpp"
#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/scope.hpp"
#if LOTUS_SUPPORTED
  #include "lotus/record/hub.hpp"
  #include "lotus/record/thread_ring.hpp"
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace torch::detail {

/// Records a span from construction to the end of the block, even if an exception ends the block.
/// cancel() discards the span. Thread safety: each object belongs to one thread.
class tagged_span {
 public:
  explicit tagged_span(lotus::detail::record_tag tag) noexcept : tag_{tag} { span_.begin(tag); }
  tagged_span(const tagged_span&) = delete;
  tagged_span& operator=(const tagged_span&) = delete;
  ~tagged_span() { span_.end(tag_); }

  void cancel() noexcept { span_.forget(tag_); }

 private:
  lotus::detail::record_tag tag_;
  lotus::detail::measured_span span_;
};

/// Works like loader_scope, but takes the id of the loader's name instead of the name. If the id is
/// 0, the thread's current loader does not change.
class in_loader {
 public:
  explicit in_loader(std::uint32_t loader) noexcept : loader_{loader} {
    if (loader_ != 0) before_ = lotus::detail::enter_loader(loader_);
  }
  in_loader(const in_loader&) = delete;
  in_loader& operator=(const in_loader&) = delete;
  ~in_loader() {
    if (loader_ != 0) lotus::detail::enter_loader(before_);
  }

 private:
  std::uint32_t loader_;
  std::uint32_t before_ = 0;
};

/// Records the dispatch, wait and reception of one loader's batches. Thread safety: only the
/// consumer's thread calls the functions. During each call, the thread's current loader must be the
/// loader whose batches the object records; only queued() sets the loader itself.
class consumer_log {
 public:
  /// @param loader  id of the loader's name; 0: the thread's current loader.
  /// @param every_request_yields  whether each request for a batch results in a batch or an
  /// exception. If not, because a stateful dataset returns nothing at its end, a request is
  /// recorded only when its batch is received.
  consumer_log(std::uint32_t loader, bool every_request_yields) noexcept
      : loader_{loader}, every_request_yields_{every_request_yields} {}

  std::uint32_t loader() const noexcept { return loader_; }

  void begin_epoch() noexcept {
    queued_ticks_.clear();
    give_up_wait();
  }

  void queued(std::size_t batch) {
    if (every_request_yields_) {
      const in_loader own{loader_};
      batch_queued(batch);
    } else if (lotus::detail::is_recording()) {
      queued_ticks_[batch] = lotus::detail::now_ticks();
    }
  }

  /// Begins a wait. If the previous request yielded no batch or timed out, its wait continues
  /// instead.
  void begin_wait() noexcept {
    if (wait_.runs()) return;
    wait_.begin(tag_of(lotus::detail::unknown_batch));
    lotus::detail::publish_wait();
    lotus::detail::look_at_batch();
  }

  /// Ends the wait and records it as the wait for this batch, which has arrived.
  void end_wait(std::size_t batch) noexcept {
    if (!wait_.runs()) return;
    lotus::detail::look_at_batch();
    lotus::detail::publish_end_of_wait();
    wait_.end(tag_of(batch));
  }

  /// Records that the consumer receives a batch, or the exception that was thrown while the batch
  /// was built.
  void delivered(std::size_t batch) noexcept {
    give_up_wait();
    batch_consumed(batch);
    const auto queued = queued_ticks_.find(batch);
    if (queued == queued_ticks_.end()) return;
    if (lotus::detail::is_recording()) {
      lotus::detail::push(queued->second, queued->second,
                          lotus::detail::batch_tag(lotus::detail::event_kind::batch_queued, batch));
    }
    queued_ticks_.erase(queued);
  }

  /// Forgets a request that yielded no batch.
  void yielded_nothing(std::size_t batch) noexcept { queued_ticks_.erase(batch); }

 private:
  static lotus::detail::record_tag tag_of(std::size_t batch) noexcept {
    return lotus::detail::batch_tag(lotus::detail::event_kind::batch_wait, batch);
  }

  void give_up_wait() noexcept {
    if (wait_.runs()) lotus::detail::publish_end_of_wait();
    wait_.forget(tag_of(lotus::detail::unknown_batch));
  }

  std::uint32_t loader_;
  bool every_request_yields_;
  lotus::detail::measured_span wait_;
  std::unordered_map<std::size_t, std::uint64_t> queued_ticks_;
};

}  // namespace torch::detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_TORCH_BATCH_LOG_HPP
