// traced(): a transform or a dataset of libtorch's, each use of which is logged.
#ifndef LOTUS_TORCH_TRACED_HPP
#define LOTUS_TORCH_TRACED_HPP

#include <torch/data/datasets/base.h>
#include <torch/data/transforms/base.h>

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lotus/compose.hpp"
#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/scope.hpp"
#include "lotus/torch/batch_log.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace torch {
namespace detail {

/// The base of T that works sample by sample; void where there is none.
template <class In, class Out>
auto sample_base(const ::torch::data::transforms::Transform<In, Out>* base) -> decltype(base);
template <class Self, class Example>
auto sample_base(const ::torch::data::datasets::Dataset<Self, Example>* base) -> decltype(base);
void sample_base(const void*);
template <class T>
using sample_base_of =
    std::remove_const_t<std::remove_pointer_t<decltype(sample_base(static_cast<T*>(nullptr)))>>;
template <class T>
inline constexpr bool has_sample_base = !std::is_void_v<sample_base_of<T>>;

/// Whether T left its whole-batch function as its sample_base_of has it: a loop over the samples.
template <class Owner, class R, class... A>
Owner* owner_of(R (Owner::*)(A...));
template <class T, class = void>
inline constexpr bool applies_by_sample = false;
template <class T>
inline constexpr bool applies_by_sample<T, std::void_t<decltype(owner_of(&T::apply_batch))>> =
    std::is_same_v<decltype(owner_of(&T::apply_batch)), sample_base_of<T>*>;
template <class T, class = void>
inline constexpr bool gets_by_sample = false;
template <class T>
inline constexpr bool gets_by_sample<T, std::void_t<decltype(owner_of(&T::get_batch))>> =
    std::is_same_v<decltype(owner_of(&T::get_batch)), sample_base_of<T>*>;

template <class T, class = void>
inline constexpr bool is_transform = false;
template <class T>
inline constexpr bool is_transform<T, std::void_t<typename T::OutputBatchType>> = true;
template <class T, class = void>
inline constexpr bool is_dataset = false;
template <class T>
inline constexpr bool is_dataset<T, std::void_t<typename T::BatchRequestType>> = true;

template <class T>
inline constexpr bool is_vector = false;
template <class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;

/// Logs each sample, or each batch where T has a way of its own for whole batches.
template <class T>
class traced_sample_transform final : public sample_base_of<T> {
  using base = sample_base_of<T>;

 public:
  traced_sample_transform(std::string_view name, T transform)
      : transform_{std::move(transform)}, tag_{lotus::detail::operation_tag(name)} {}

  typename base::OutputType apply(typename base::InputType sample) override {
    const tagged_span span{tag_};
    return static_cast<base&>(transform_).apply(std::move(sample));
  }

  typename base::OutputBatchType apply_batch(typename base::InputBatchType samples) override {
    if constexpr (applies_by_sample<T>) {
      return base::apply_batch(std::move(samples));
    } else {
      const tagged_span span{tag_};
      return transform_.apply_batch(std::move(samples));
    }
  }

 private:
  T transform_;
  lotus::detail::record_tag tag_;
};

/// Logs each batch.
template <class T>
class traced_batch_transform final
    : public ::torch::data::transforms::BatchTransform<typename T::InputBatchType,
                                                       typename T::OutputBatchType> {
 public:
  traced_batch_transform(std::string_view name, T transform)
      : transform_{std::move(transform)}, tag_{lotus::detail::operation_tag(name)} {}

  typename T::OutputBatchType apply_batch(typename T::InputBatchType batch) override {
    const tagged_span span{tag_};
    return transform_.apply_batch(std::move(batch));
  }

 private:
  T transform_;
  lotus::detail::record_tag tag_;
};

/// Logs each sample, or each batch where D has a way of its own for whole batches.
template <class D>
class traced_sample_dataset final
    : public ::torch::data::datasets::Dataset<traced_sample_dataset<D>, typename D::ExampleType> {
  using base = ::torch::data::datasets::Dataset<traced_sample_dataset<D>, typename D::ExampleType>;

 public:
  traced_sample_dataset(std::string_view name, D dataset)
      : dataset_{std::move(dataset)}, tag_{lotus::detail::operation_tag(name)} {}

  typename base::ExampleType get(std::size_t index) override {
    const tagged_span span{tag_};
    return static_cast<sample_base_of<D>&>(dataset_).get(index);
  }

  typename base::BatchType get_batch(typename base::BatchRequestType indices) override {
    if constexpr (gets_by_sample<D>) {
      return base::get_batch(indices);
    } else {
      const tagged_span span{tag_};
      return dataset_.get_batch(indices);
    }
  }

  auto size() const -> decltype(std::declval<const base&>().size()) override {
    return dataset_.size();
  }

  /// What is traced.
  D& dataset() noexcept { return dataset_; }
  const D& dataset() const noexcept { return dataset_; }

 private:
  D dataset_;
  lotus::detail::record_tag tag_;
};

/// Logs each batch, except where a stateful dataset is at its end.
template <class D>
class traced_batch_dataset final
    : public ::torch::data::datasets::BatchDataset<traced_batch_dataset<D>, typename D::BatchType,
                                                   typename D::BatchRequestType> {
  using base = ::torch::data::datasets::BatchDataset<traced_batch_dataset<D>, typename D::BatchType,
                                                     typename D::BatchRequestType>;

 public:
  traced_batch_dataset(std::string_view name, D dataset)
      : dataset_{std::move(dataset)}, tag_{lotus::detail::operation_tag(name)} {}

  typename base::BatchType get_batch(typename base::BatchRequestType request) override {
    tagged_span span{tag_};
    typename base::BatchType batch = dataset_.get_batch(std::move(request));
    if constexpr (base::is_stateful) {
      if (!batch) span.cancel();
    }
    return batch;
  }

  auto size() const -> decltype(std::declval<const base&>().size()) override {
    return dataset_.size();
  }

  /// Of stateful datasets.
  void reset() { dataset_.reset(); }

  /// What is traced.
  D& dataset() noexcept { return dataset_; }
  const D& dataset() const noexcept { return dataset_; }

 private:
  D dataset_;
  lotus::detail::record_tag tag_;
};

/// How a person would call what T does.
template <class T>
constexpr std::string_view usual_name() noexcept {
  if constexpr (is_dataset<T>) {
    return "Loader";
  } else if constexpr (!has_sample_base<T> && !is_vector<typename T::OutputBatchType>) {
    return "Collation";
  } else {
    return lotus::detail::type_name<T>();
  }
}

}  // namespace detail

/// Wraps a transform or a dataset of libtorch's, for the same use, and logs "S<name>":
/// - a transform of samples: for each sample (where it overrides apply_batch(): each batch);
/// - a transform of batches: for each batch;
/// - a dataset: for each get(), or each get_batch() where it has no get() or overrides get_batch().
/// Samples and batches are moved through. Copies when what it wraps copies, and is as thread-safe.
/// Exceptions pass through, logged up to there.
/// @param name  interned by content.
/// @param x     copied or moved into the result.
template <class T>
auto traced(std::string_view name, T&& x) {
  using wrapped = std::decay_t<T>;
  static_assert(detail::is_transform<wrapped> || detail::is_dataset<wrapped>,
                "traced() takes a transform or a dataset as torch::data has them");
  if constexpr (detail::is_transform<wrapped>) {
    if constexpr (detail::has_sample_base<wrapped>) {
      return detail::traced_sample_transform<wrapped>{name, std::forward<T>(x)};
    } else {
      return detail::traced_batch_transform<wrapped>{name, std::forward<T>(x)};
    }
  } else {
    if constexpr (detail::has_sample_base<wrapped>) {
      return detail::traced_sample_dataset<wrapped>{name, std::forward<T>(x)};
    } else {
      return detail::traced_batch_dataset<wrapped>{name, std::forward<T>(x)};
    }
  }
}

/// The same under the usual name: "Loader" for a dataset, "Collation" for what makes one batch of a
/// vector of samples, the type's name for any other transform (`Normalize`).
template <class T>
auto traced(T&& x) {
  return traced(detail::usual_name<std::decay_t<T>>(), std::forward<T>(x));
}

}  // namespace torch
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_TORCH_TRACED_HPP
