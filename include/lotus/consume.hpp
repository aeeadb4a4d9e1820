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

// Finds begin() and end() as a range-based for does: members, or functions found by
// argument-dependent lookup. <string_view> declares std::begin() and std::end().
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

/// Two iterators as a range.
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
    mutable Sentinel end;  // mutable: some loaders' iterators need a non-const sentinel
  };

  template <class Iterator>
  class iterator {
   public:
    iterator(consumed_range& range, Iterator&& at) : range_{range}, at_{std::move(at)} {}

    /// Discards the wait that was open at the end of the data, because no batch ended it.
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

    /// Ends the wait only after the iterator is dereferenced, because some iterators build the
    /// batch when they are dereferenced.
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
    /// Ends the wait in its destructor, which runs after the batch was built in the caller's
    /// object. So the batch need not be movable.
    struct reception {
      consumed_range& range;
      ~reception() { range.receive(range.next_++); }
    };

    consumed_range& range_;
    Iterator at_;
  };

  /// Begins the first wait here, because a loader may start its work in begin().
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
/// anything else must outlive the loop. The result belongs to one thread.
template <class Range, std::enable_if_t<detail::is_range<Range>, int> = 0>
auto consume(Range&& batches) {
  return detail::consumed_range<Range, detail::order_of_reception>{std::forward<Range>(batches),
                                                                   {}};
}

/// Like consume(batches), for a loader that has only iterators.
template <class Iterator, class Sentinel,
          std::enable_if_t<detail::are_iterators<Iterator, Sentinel>, int> = 0>
// Iterators are moved if that is cheaper; clang-tidy reports types for which it is not.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
auto consume(Iterator first, Sentinel last) {
  return consume(detail::iterator_pair<Iterator, Sentinel>{std::move(first), std::move(last)});
}

/// Like consume(batches), for batches that know their numbers: lotus::consume(loader,
/// &Batch::index).
/// @param number  returns a batch's number as an integer: a function that is called with the batch,
/// or a pointer to a member of the batch.
template <class Range, class Number,
          std::enable_if_t<!detail::are_iterators<std::decay_t<Range>, Number>, int> = 0>
auto consume(Range&& batches, Number number) {
  return detail::consumed_range<Range, Number>{std::forward<Range>(batches), std::move(number)};
}
/// Like consume(batches, number), for a loader that has only iterators.
template <class Iterator, class Sentinel, class Number>
// NOLINTNEXTLINE(performance-unnecessary-value-param)
auto consume(Iterator first, Sentinel last, Number number) {
  return consume(detail::iterator_pair<Iterator, Sentinel>{std::move(first), std::move(last)},
                 std::move(number));
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_CONSUME_HPP
