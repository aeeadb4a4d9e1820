// A dataset whose requests carry batch numbers, so that who makes a batch can log it.
#ifndef LOTUS_TORCH_NUMBERED_DATASET_HPP
#define LOTUS_TORCH_NUMBERED_DATASET_HPP

#include <cstddef>
#include <utility>

#include "lotus/batch.hpp"
#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/torch/batch_log.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace torch::detail {

template <class Request>
struct numbered_request {
  Request request;
  std::size_t batch = 0;
};

/// The wait of a consumer that makes its batches itself: as long as the making takes.
/// The operations of the making are the loader's, too.
class inline_wait {
 public:
  /// @param consumer  borrowed; null where a worker makes the batch: then nothing is logged.
  inline_wait(consumer_log* consumer, std::size_t batch) noexcept
      : own_{consumer != nullptr ? consumer->loader() : 0}, consumer_{consumer}, batch_{batch} {
    if (consumer_ != nullptr) consumer_->begin_wait();
  }
  inline_wait(const inline_wait&) = delete;
  inline_wait& operator=(const inline_wait&) = delete;
  ~inline_wait() {
    if (consumer_ == nullptr) return;
    consumer_->end_wait(batch_);
    consumer_->handed_over(batch_);
  }

  void yielded_nothing() noexcept {
    if (consumer_ != nullptr) consumer_->yielded_nothing(batch_);
    consumer_ = nullptr;
  }

 private:
  in_loader own_;
  consumer_log* consumer_;
  std::size_t batch_;
};

/// Logs the making of a batch; see tagged_span.
class making {
 public:
  explicit making(std::size_t batch) noexcept
      : span_{lotus::detail::batch_tag(lotus::detail::event_kind::batch_preprocessed, batch)} {
    lotus::detail::look_at_batch();
  }
  making(const making&) = delete;
  making& operator=(const making&) = delete;
  ~making() { lotus::detail::look_at_batch(); }

  void yielded_nothing() noexcept { span_.cancel(); }

 private:
  tagged_span span_;
};

/// Logs "SBatchPreprocessed_i" on the thread that calls get_batch(), for each request that yields a
/// batch or throws. Copies when the dataset copies. Thread safety: the dataset's.
template <class Dataset, class Request>
class numbered_dataset {
 public:
  /// @param consumer  borrowed; not null where the consumer itself will call get_batch().
  numbered_dataset(Dataset dataset, consumer_log* consumer)
      : dataset_{std::move(dataset)}, consumer_{consumer} {}

  /// Exceptions of the dataset pass through.
  auto get_batch(numbered_request<Request> numbered) {
    inline_wait wait{consumer_, numbered.batch};
    making made{numbered.batch};
    auto batch = dataset_.get_batch(std::move(numbered.request));
    if constexpr (Dataset::is_stateful) {
      if (!batch) {
        made.yielded_nothing();
        wait.yielded_nothing();
      }
    }
    return batch;
  }

  void reset() { dataset_.reset(); }

 private:
  Dataset dataset_;
  consumer_log* consumer_;
};

}  // namespace torch::detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_TORCH_NUMBERED_DATASET_HPP
