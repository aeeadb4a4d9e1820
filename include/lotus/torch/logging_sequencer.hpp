// Records when a data loader waits for the batches of its workers, and when they arrive.
#ifndef LOTUS_TORCH_LOGGING_SEQUENCER_HPP
#define LOTUS_TORCH_LOGGING_SEQUENCER_HPP

#include <torch/data/detail/sequencers.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "lotus/batch.hpp"
#include "lotus/config.hpp"
#include "lotus/torch/batch_log.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace torch::detail {

/// Wraps libtorch's sequencer, which decides in which order the results of workers reach the
/// consumer, and records when results arrive and when the consumer receives them. Each epoch has a
/// new object. Thread safety: only the consumer's thread may call it.
template <class Result>
class logging_sequencer final : public ::torch::data::detail::sequencers::Sequencer<Result> {
 public:
  using sequencer = ::torch::data::detail::sequencers::Sequencer<Result>;
  using typename sequencer::ResultProducer;
  using optional_result = typename ResultProducer::result_type;

  /// @param order    the sequencer that decides which result is next.
  /// @param ordered  whether that sequencer delivers batches in the order of their numbers.
  /// @param log  the log of the loader; borrowed.
  logging_sequencer(std::unique_ptr<sequencer> order, bool ordered, consumer_log& log)
      : order_{std::move(order)}, ordered_{ordered}, log_{log} {}

  /// Returns the next result. Exceptions of `next_result`, such as a timeout, propagate; then the
  /// next call continues the same wait.
  optional_result next(ResultProducer next_result) override {
    const in_loader own{log_.loader()};
    log_.begin_wait();
    optional_result result = order_->next([&] {
      optional_result arrived = next_result();
      if (arrived && yields(*arrived)) on_arrival(arrived->sequence_number);
      return arrived;
    });
    if (!result) return result;
    ++awaited_;
    if (yields(*result)) {
      log_.delivered(result->sequence_number);
    } else {
      log_.yielded_nothing(result->sequence_number);
    }
    return result;
  }

 private:
  static bool yields(const Result& result) { return result.batch || result.exception; }

  void on_arrival(std::size_t batch) noexcept {
    if (ordered_ && batch != awaited_) {
      batch_arrived(batch);
    } else {
      log_.end_wait(batch);
    }
  }

  std::unique_ptr<sequencer> order_;
  bool ordered_;
  std::size_t awaited_ = 0;  ///< number of the next batch in order, if ordered_
  consumer_log& log_;
};

}  // namespace torch::detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_TORCH_LOGGING_SEQUENCER_HPP
