// Provides traced(), which wraps a transform or dataset of libtorch and records each use.
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

/// `sample_base_of<T>` is the libtorch base class of T that handles one sample at a time, or void
/// if T has no such base.
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

/// owner_of() finds the class that declares a member function. With it, the constants below show
/// whether T overrides the function for batches (apply_batch() of a transform, get_batch() of a
/// dataset), or uses that of the base class, which loops over the samples.
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

/// Wraps a transform of samples. Records the work on each sample, or on each batch if T overrides
/// apply_batch().
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

/// Wraps a transform of batches. Records the work on each batch.
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

/// Wraps a dataset of samples. Records the reading of each sample, or of each batch if D overrides
/// get_batch().
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

  D& dataset() noexcept { return dataset_; }
  const D& dataset() const noexcept { return dataset_; }

 private:
  D dataset_;
  lotus::detail::record_tag tag_;
};

/// Wraps a dataset of batches. Records the reading of each batch, but nothing if a stateful dataset
/// returns no batch because it is at its end.
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

  void reset() { dataset_.reset(); }

  D& dataset() noexcept { return dataset_; }
  const D& dataset() const noexcept { return dataset_; }

 private:
  D dataset_;
  lotus::detail::record_tag tag_;
};

/// Returns the name under which traced() records an object of type T if the program passes no name.
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

/// Wraps a transform or dataset of libtorch. The wrapper is used like the original and records
/// "S<name>"
/// - for a transform of samples: each sample, or each batch if it overrides apply_batch();
/// - for a transform of batches: each batch;
/// - for a dataset: each get(), or each get_batch() if it has no get() or overrides get_batch().
/// Samples and batches are moved, not copied. The wrapper is copyable and thread-safe if the
/// wrapped object is. Exceptions propagate; the time up to an exception is recorded.
/// @param name  copied into a table of names, so it needs to exist only during this call.
/// @param x  the transform or dataset, copied or moved into the result.
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

/// Wraps `x` like traced(name, x). The name is "Loader" for a dataset, "Collation" for a transform
/// that builds one batch from a vector of samples, and the type's name for any other transform,
/// such as `Normalize`.
template <class T>
auto traced(T&& x) {
  return traced(detail::usual_name<std::decay_t<T>>(), std::forward<T>(x));
}

}  // namespace torch
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_TORCH_TRACED_HPP
