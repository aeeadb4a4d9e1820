// What a data loader logs of its batches: by who makes them, by who consumes them.
#ifndef LOTUS_TORCH_BATCH_LOG_HPP
#define LOTUS_TORCH_BATCH_LOG_HPP

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "lotus/batch.hpp"
#include "lotus/config.hpp"
#include "lotus/loader.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread_ring.hpp"
#include "lotus/scope.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace torch::detail {

/// Logs from here to the end of the block, also when that is left by an exception, unless it turns
/// out that there was nothing to log. Thread safety: belongs to one thread.
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

/// As loader_scope, for the loader of this id; where that is 0, the thread stays in its own.
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

/// The consumer's side of the batches of one loader. Thread safety: the consumer's thread only,
/// which is in the loader where these are called; queued() enters it by itself.
class consumer_log {
 public:
  /// @param loader  id of its name; 0: what the consumer's thread is in when its batches are used.
  /// @param every_request_yields  whether each request ends in a batch or an exception. Where one
  ///   may come back empty (a stateful dataset's end), it is logged as queued when its batch comes.
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

  /// A wait that yielded no batch, by an empty request or a timeout, goes on.
  void begin_wait() noexcept {
    if (wait_.runs()) return;
    wait_.begin(tag_of(0));
    lotus::detail::publish_wait();
    lotus::detail::look_at_batch();
  }

  /// The batch that was waited for is here.
  void end_wait(std::size_t batch) noexcept {
    if (!wait_.runs()) return;
    lotus::detail::look_at_batch();
    lotus::detail::publish_end_of_wait();
    wait_.end(tag_of(batch));
  }

  /// Goes to the user now: the batch, or the exception that making it threw.
  void handed_over(std::size_t batch) noexcept {
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

  /// The request was answered without a batch.
  void yielded_nothing(std::size_t batch) noexcept { queued_ticks_.erase(batch); }

 private:
  static lotus::detail::record_tag tag_of(std::size_t batch) noexcept {
    return lotus::detail::batch_tag(lotus::detail::event_kind::batch_wait, batch);
  }

  void give_up_wait() noexcept {
    if (wait_.runs()) lotus::detail::publish_end_of_wait();
    wait_.forget(tag_of(0));
  }

  std::uint32_t loader_;
  bool every_request_yields_;
  lotus::detail::measured_span wait_;
  std::unordered_map<std::size_t, std::uint64_t> queued_ticks_;
};

}  // namespace torch::detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_TORCH_BATCH_LOG_HPP
