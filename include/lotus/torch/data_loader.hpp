// Provides data loaders that work like those of libtorch and record their batches.
#ifndef LOTUS_TORCH_DATA_LOADER_HPP
#define LOTUS_TORCH_DATA_LOADER_HPP

#include <torch/data/dataloader.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "lotus/batch.hpp"
#include "lotus/config.hpp"
#include "lotus/torch/batch_log.hpp"
#include "lotus/torch/logging_sequencer.hpp"
#include "lotus/torch/numbered_dataset.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace torch {
namespace detail {

/// Finds the optional type of the installed libtorch, which is the type `optional` below: libtorch
/// 1.13 and 2.0 define one of their own, later versions use std::optional.
template <class Optional, class T>
struct optional_like;
template <template <class> class Optional, class Any, class T>
struct optional_like<Optional<Any>, T> {
  using type = Optional<T>;
};
using optional_size =
    std::decay_t<decltype(std::declval<const ::torch::data::DataLoaderOptions&>().max_jobs())>;
template <class T>
using optional = typename optional_like<optional_size, T>::type;

template <class Dataset, class Batch, class Request>
using loader_base = ::torch::data::DataLoaderBase<numbered_dataset<Dataset, Request>, Batch,
                                                  numbered_request<Request>>;

/// The common base of loaders for stateless and stateful datasets: numbers the requests for
/// batches, and records the results of each epoch.
template <class Dataset, class Batch, class Request>
class logging_loader : public loader_base<Dataset, Batch, Request> {
  using base = loader_base<Dataset, Batch, Request>;

 protected:
  using dataset_type = numbered_dataset<Dataset, Request>;

  logging_loader(std::string_view loader, ::torch::data::DataLoaderOptions options,
                 bool every_request_yields)
      : base{options}, log_{lotus::detail::loader_of(loader), every_request_yields} {}

  /// The function that each worker thread runs for its whole lifetime.
  void work(dataset_type& dataset) {
    const in_loader own{log_.loader()};
    this->worker_thread(dataset);
  }

  consumer_log* log_of_inline_preprocessing() noexcept {
    return this->options_.workers == 0 ? &log_ : nullptr;
  }

  void reset() override {
    log_.begin_epoch();
    next_batch_ = 0;
    base::reset();
    this->sequencer_ = std::make_unique<logging_sequencer<typename base::Result>>(
        std::move(this->sequencer_), this->options_.enforce_ordering, log_);
  }

  /// Adds the next batch number to a request, and records that the batch is dispatched, because the
  /// base class sends the request to a worker immediately.
  numbered_request<Request> numbered(Request request) {
    log_.queued(next_batch_);
    return {std::move(request), next_batch_++};
  }

 private:
  consumer_log log_;
  std::size_t next_batch_ = 0;
};

}  // namespace detail

/// Works like ::torch::data::StatelessDataLoader; created by make_data_loader().
template <class Dataset, class Sampler>
class stateless_data_loader final
    : public detail::logging_loader<Dataset, typename Dataset::BatchType,
                                    typename Sampler::BatchRequestType> {
  using base = detail::logging_loader<Dataset, typename Dataset::BatchType,
                                      typename Sampler::BatchRequestType>;
  using typename base::dataset_type;

 public:
  /// @param dataset  the data; each worker gets a copy.
  stateless_data_loader(std::string_view loader, Dataset dataset, Sampler sampler,
                        ::torch::data::DataLoaderOptions options)
      : base{loader, options, true}, sampler_{std::move(sampler)} {
    dataset_type source{std::move(dataset), this->log_of_inline_preprocessing()};
    for (std::size_t i = 0; i < this->options_.workers; ++i) {
      this->workers_.emplace_back([this, source]() mutable { this->work(source); });
    }
    if (this->options_.workers == 0) {
      this->main_thread_dataset_ = std::make_unique<dataset_type>(std::move(source));
    }
  }

 private:
  void reset() override {
    sampler_.reset();
    base::reset();
  }

  detail::optional<typename base::BatchRequestType> get_batch_request() override {
    auto indices = sampler_.next(this->options_.batch_size);
    if (!indices) return {};
    if (this->options_.drop_last && indices->size() < this->options_.batch_size) return {};
    TORCH_INTERNAL_ASSERT(indices->size() > 0, "The sampler gave an empty request");
    return this->numbered(std::move(*indices));
  }

  Sampler sampler_;
};

/// Works like ::torch::data::StatefulDataLoader; created by make_data_loader().
template <class Dataset>
class stateful_data_loader final
    : public detail::logging_loader<Dataset, typename Dataset::BatchType::value_type,
                                    typename Dataset::BatchRequestType> {
  using base = detail::logging_loader<Dataset, typename Dataset::BatchType::value_type,
                                      typename Dataset::BatchRequestType>;
  using typename base::dataset_type;

 public:
  /// @param dataset  the data; all workers share it.
  stateful_data_loader(std::string_view loader, Dataset dataset,
                       ::torch::data::DataLoaderOptions options)
      : base{loader, options, false} {
    this->main_thread_dataset_ =
        std::make_unique<dataset_type>(std::move(dataset), this->log_of_inline_preprocessing());
    for (std::size_t i = 0; i < this->options_.workers; ++i) {
      this->workers_.emplace_back([this] { this->work(*this->main_thread_dataset_); });
    }
  }

 private:
  void reset() override {
    this->main_thread_dataset_->reset();
    base::reset();
  }

  detail::optional<typename base::BatchRequestType> get_batch_request() override {
    return this->numbered(this->options_.batch_size);
  }
};

/// Creates a data loader. All overloads work like those of ::torch::data::make_data_loader, with
/// the same arguments, results and errors. In addition, the loader records each batch:
/// "SBatchPreprocessed_i" on the worker that builds the batch, and "SBatchQueued_i", "SBatchWait_i"
/// and "SBatchConsumed_i" on the thread that iterates. If the building throws, it is recorded up to
/// the exception. Cost: at most six records per batch, and a number stored with each request.
/// @param loader  name of the loader to which these records and those of the operations that build
///   batches belong; other records of the iterating thread keep their loader. Copied. If it is
///   empty, all records belong to their thread's current loader. A name costs some system calls per
///   batch.
template <class Dataset, class Sampler>
std::enable_if_t<!Dataset::is_stateful, std::unique_ptr<stateless_data_loader<Dataset, Sampler>>>
make_data_loader(std::string_view loader, Dataset dataset, Sampler sampler,
                 ::torch::data::DataLoaderOptions options) {
  return std::make_unique<stateless_data_loader<Dataset, Sampler>>(loader, std::move(dataset),
                                                                   std::move(sampler), options);
}

/// Creates a data loader, and constructs its sampler from the size of the dataset. The dataset's
/// size() must return that size.
template <class Sampler = ::torch::data::samplers::RandomSampler, class Dataset>
std::enable_if_t<!Dataset::is_stateful && std::is_constructible_v<Sampler, std::size_t>,
                 std::unique_ptr<stateless_data_loader<Dataset, Sampler>>>
make_data_loader(std::string_view loader, Dataset dataset,
                 ::torch::data::DataLoaderOptions options = {}) {
  const auto size = dataset.size();
  TORCH_CHECK(size.has_value(), "The dataset must know its size for a sampler to be made for it");
  // Samplers accept the size as different integer types. std::make_from_tuple converts the size
  // inside a system header, where the user's compiler does not warn about the conversion.
  return torch::make_data_loader(loader, std::move(dataset),
                                 std::make_from_tuple<Sampler>(std::make_tuple(*size)), options);
}

/// Creates a data loader for a stateful dataset. Requests for which the dataset returns nothing,
/// because it is at its end, are not recorded.
template <class Dataset, class = std::enable_if_t<Dataset::is_stateful>>
std::unique_ptr<stateful_data_loader<Dataset>> make_data_loader(
    std::string_view loader, Dataset dataset, ::torch::data::DataLoaderOptions options = {}) {
  return std::make_unique<stateful_data_loader<Dataset>>(loader, std::move(dataset), options);
}

/// Creates a data loader without a loader name: its records belong to their thread's current
/// loader. (The call is qualified, because an unqualified one would also match functions of
/// torch::data.)
template <class Dataset, class Sampler>
std::enable_if_t<!Dataset::is_stateful, std::unique_ptr<stateless_data_loader<Dataset, Sampler>>>
make_data_loader(Dataset dataset, Sampler sampler, ::torch::data::DataLoaderOptions options) {
  return torch::make_data_loader(std::string_view{}, std::move(dataset), std::move(sampler),
                                 options);
}

/// Creates a data loader without a loader name, and constructs its sampler from the size of the
/// dataset.
template <class Sampler = ::torch::data::samplers::RandomSampler, class Dataset>
std::enable_if_t<!Dataset::is_stateful && std::is_constructible_v<Sampler, std::size_t>,
                 std::unique_ptr<stateless_data_loader<Dataset, Sampler>>>
make_data_loader(Dataset dataset, ::torch::data::DataLoaderOptions options = {}) {
  return torch::make_data_loader<Sampler>(std::string_view{}, std::move(dataset), options);
}

/// Creates a data loader for a stateful dataset, without a loader name.
template <class Dataset, class = std::enable_if_t<Dataset::is_stateful>>
std::unique_ptr<stateful_data_loader<Dataset>> make_data_loader(
    Dataset dataset, ::torch::data::DataLoaderOptions options = {}) {
  return torch::make_data_loader(std::string_view{}, std::move(dataset), options);
}

}  // namespace torch
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_TORCH_DATA_LOADER_HPP
