// Provides numbered_dataset, a wrapper of a libtorch dataset. Its requests contain batch numbers,
// so that the thread that builds a batch can record the number.
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

/// If the consumer builds batches itself, because there are no workers, records the building of a
/// batch as the consumer's wait. Operations during that time are recorded for that consumer's
/// loader.
class inline_wait {
 public:
  /// @param consumer  borrowed; null if a worker builds the batch, so that no wait is recorded.
  inline_wait(consumer_log* consumer, std::size_t batch) noexcept
      : own_{consumer != nullptr ? consumer->loader() : 0}, consumer_{consumer}, batch_{batch} {
    if (consumer_ != nullptr) consumer_->begin_wait();
  }
  inline_wait(const inline_wait&) = delete;
  inline_wait& operator=(const inline_wait&) = delete;
  ~inline_wait() {
    if (consumer_ == nullptr) return;
    consumer_->end_wait(batch_);
    consumer_->delivered(batch_);
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

/// Records the building of a batch, from construction to the end of the block.
class preprocessing {
 public:
  explicit preprocessing(std::size_t batch) noexcept
      : span_{lotus::detail::batch_tag(lotus::detail::event_kind::batch_preprocessed, batch)} {
    lotus::detail::look_at_batch();
  }
  preprocessing(const preprocessing&) = delete;
  preprocessing& operator=(const preprocessing&) = delete;
  ~preprocessing() { lotus::detail::look_at_batch(); }

  void yielded_nothing() noexcept { span_.cancel(); }

 private:
  tagged_span span_;
};

/// Wraps a dataset. For each request that yields a batch or throws, records "SBatchPreprocessed_i"
/// on the thread that calls get_batch(). Copyable and thread-safe if the dataset is.
template <class Dataset, class Request>
class numbered_dataset {
 public:
  /// @param consumer  the log of a consumer that calls get_batch() itself, borrowed; null if
  /// workers call it.
  numbered_dataset(Dataset dataset, consumer_log* consumer)
      : dataset_{std::move(dataset)}, consumer_{consumer} {}

  /// Returns the result of the dataset's get_batch(); exceptions of the dataset propagate.
  auto get_batch(numbered_request<Request> numbered) {
    inline_wait wait{consumer_, numbered.batch};
    preprocessing made{numbered.batch};
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
