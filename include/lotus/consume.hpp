// Provides consume(), a range that records each wait for a batch and each reception of a batch.
#ifndef LOTUS_CONSUME_HPP
#define LOTUS_CONSUME_HPP

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lotus/base/call.hpp"
#include "lotus/batch.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

// begin_of() and the functions below it find begin() and end() as a range-based for does: as
// members, through std::begin() and std::end() (declared by <string_view>), or by
// argument-dependent lookup.
using std::begin;
using std::end;
template <class Source>
auto begin_of(Source& source) -> decltype(begin(source)) {
  return begin(source);
}
template <class Source>
auto end_of(Source& source) -> decltype(end(source)) {
  return end(source);
}

template <class Source, class = void>
inline constexpr bool is_range = false;
template <class Source>
inline constexpr bool is_range<Source, std::void_t<decltype(begin_of(std::declval<Source&>()))>> =
    true;

/// Whether a Sentinel can be the end of a range that begins with an Iterator.
template <class Iterator, class Sentinel, class = void>
inline constexpr bool are_iterators = false;
template <class Iterator, class Sentinel>
inline constexpr bool
    are_iterators<Iterator, Sentinel,
                  std::void_t<decltype(*std::declval<Iterator&>()),
                              decltype(std::declval<Iterator&>() != std::declval<Sentinel&>())>> =
        true;

/// A range that consists of two iterators, for loaders that have no begin() and end().
template <class Iterator, class Sentinel>
struct iterator_pair {
  Iterator first;
  Sentinel last;

  Iterator begin() { return std::move(first); }
  Sentinel end() { return std::move(last); }
};

/// The default numbering: batches are numbered from 0 in the order of their reception.
struct order_of_reception {};

/// The range that consume() returns. It is an input range: a loop can read each batch only once.
/// @tparam Source  a range, or a reference to a range.
/// @tparam Number  order_of_reception, or a callable that returns a batch's number.
template <class Source, class Number>
class consumed_range {
 public:
  consumed_range(Source&& source, Number number)
      : source_{std::forward<Source>(source)}, number_{std::move(number)} {}

  template <class Sentinel>
  struct sentinel {
    // mutable, because the iterators of some loaders compare only with a non-const sentinel
    mutable Sentinel end;
  };

  template <class Iterator>
  class iterator {
   public:
    iterator(consumed_range& range, Iterator&& at) : range_{range}, at_{std::move(at)} {}

    /// Compares with the end of the data. At the end, discards the wait that has begun, because no
    /// batch ended it.
    template <class Sentinel>
    bool operator!=(const sentinel<Sentinel>& last) {
      const bool more = at_ != last.end;
      if (!more) range_.wait_.forget();
      return more;
    }

    iterator& operator++() {
      range_.wait_.begin();
      ++at_;
      return *this;
    }

    /// Returns the batch and ends the wait for it. The wait ends only after the source's iterator
    /// was dereferenced, because some iterators build the batch at that moment.
    decltype(auto) operator*() {
      if constexpr (std::is_same_v<Number, order_of_reception>) {
        const reception received{range_};
        return *at_;
      } else {
        decltype(auto) batch = *at_;
        range_.receive(
            static_cast<std::uint64_t>(detail::call(range_.number_, std::as_const(batch))));
        return static_cast<decltype(*at_)>(std::move(batch));
      }
    }

   private:
    /// The destructor of this object ends the wait. It runs after `return *at_` has constructed the
    /// batch directly in the caller's variable, so the batch need not be movable.
    struct reception {
      consumed_range& range;
      ~reception() { range.receive(range.next_++); }
    };

    consumed_range& range_;
    Iterator at_;
  };

  /// Begins the first wait before it calls the source's begin(), because a loader may start its
  /// work there.
  auto begin() {
    next_ = 0;
    wait_.begin();
    return iterator<decltype(begin_of(source_))>{*this, begin_of(source_)};
  }
  auto end() { return sentinel<decltype(end_of(source_))>{end_of(source_)}; }

 private:
  void receive(std::uint64_t batch) noexcept {
    wait_.end(batch);
    batch_consumed(batch);
  }

  Source source_;
  Number number_;
  std::uint64_t next_ = 0;
  repeated_wait wait_;
};

}  // namespace detail

/// Records the wait for each batch and its reception while a loop iterates over a loader:
///
///   for (auto&& batch : lotus::consume(loader)) train(batch);
///
/// Batches are numbered from 0 in the order of their reception; workers must use the same numbers.
/// The body of the loop is the consumer's step. Exceptions of the loader propagate.
/// @param batches  anything that a range-based for accepts. A temporary is stored in the result;
/// anything else must outlive the loop. Thread safety: the result belongs to one thread.
template <class Range, std::enable_if_t<detail::is_range<Range>, int> = 0>
[[nodiscard]] auto consume(Range&& batches) {
  return detail::consumed_range<Range, detail::order_of_reception>{std::forward<Range>(batches),
                                                                   {}};
}

/// Like consume(batches), for a loader that is given by two iterators.
template <class Iterator, class Sentinel,
          std::enable_if_t<detail::are_iterators<Iterator, Sentinel>, int> = 0>
// Iterators are passed by value and moved, because some cannot be copied. clang-tidy would report
// this for iterators that can only be copied.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
[[nodiscard]] auto consume(Iterator first, Sentinel last) {
  return consume(detail::iterator_pair<Iterator, Sentinel>{std::move(first), std::move(last)});
}

/// Like consume(batches), for batches that contain their own numbers, for example
/// lotus::consume(loader, &Batch::index).
/// @param number  returns a batch's number as an integer: a function that is called with the batch,
/// or a pointer to a member of the batch.
template <class Range, class Number,
          std::enable_if_t<!detail::are_iterators<std::decay_t<Range>, Number>, int> = 0>
[[nodiscard]] auto consume(Range&& batches, Number number) {
  return detail::consumed_range<Range, Number>{std::forward<Range>(batches), std::move(number)};
}
/// Like consume(batches, number), for a loader that is given by two iterators.
template <class Iterator, class Sentinel, class Number>
// NOLINTNEXTLINE(performance-unnecessary-value-param)
[[nodiscard]] auto consume(Iterator first, Sentinel last, Number number) {
  return consume(detail::iterator_pair<Iterator, Sentinel>{std::move(first), std::move(last)},
                 std::move(number));
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_CONSUME_HPP
