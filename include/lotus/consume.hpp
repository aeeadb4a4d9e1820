// A range that records waits and receptions of batches while a loop iterates over it.
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

// The functions that a range-based for would find: members, or others by argument-dependent lookup.
// <string_view> provides std::begin() and std::end().
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

/// Whether the second type can be the end of a range that the first begins.
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

/// Numbers batches from 0 in the order of their reception.
struct order_of_reception {};

/// What consume() returns. It is an input range: a loop can read each batch only once.
/// @tparam Source  a range, or a reference to one.
template <class Source, class Number>
class consumed_range {
 public:
  consumed_range(Source&& source, Number number)
      : source_{std::forward<Source>(source)}, number_{std::move(number)} {}

  template <class Sentinel>
  struct sentinel {
    mutable Sentinel end;  // mutable: some loaders' iterators compare only with non-const ones
  };

  template <class Iterator>
  class iterator {
   public:
    iterator(consumed_range& range, Iterator&& at) : range_{range}, at_{std::move(at)} {}

    /// At the end of the data there is no batch, so the last wait is discarded.
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

    /// Ends the wait only after dereferencing: an iterator may build the batch here.
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
    /// Ends the wait after the batch was built in its final place, so that the batch need not be
    /// movable.
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

/// Records the wait for each batch and its reception while a loop goes through a loader:
///
///   for (auto&& batch : lotus::consume(loader)) train(batch);
///
/// Batches are numbered from 0 in the order of their reception; workers must use the same numbers.
/// The body of the loop is the consumer's step. Exceptions of the loader propagate.
/// @param batches  anything that a range-based for accepts; a temporary is stored, anything else
/// must outlive the loop. Belongs to one thread.
template <class Range, std::enable_if_t<detail::is_range<Range>, int> = 0>
auto consume(Range&& batches) {
  return detail::consumed_range<Range, detail::order_of_reception>{std::forward<Range>(batches),
                                                                   {}};
}

/// The same for a loader that has only iterators.
template <class Iterator, class Sentinel,
          std::enable_if_t<detail::are_iterators<Iterator, Sentinel>, int> = 0>
// Moved if that is cheaper; clang-tidy sees the copies of types that have no cheaper move.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
auto consume(Iterator first, Sentinel last) {
  return consume(detail::iterator_pair<Iterator, Sentinel>{std::move(first), std::move(last)});
}

/// The same for batches that know their numbers: lotus::consume(loader, &Batch::index).
/// @param number  called with each batch, or a pointer to a member of it; returns an integer.
template <class Range, class Number,
          std::enable_if_t<!detail::are_iterators<std::decay_t<Range>, Number>, int> = 0>
auto consume(Range&& batches, Number number) {
  return detail::consumed_range<Range, Number>{std::forward<Range>(batches), std::move(number)};
}
/// The same for a loader that has only iterators.
template <class Iterator, class Sentinel, class Number>
// NOLINTNEXTLINE(performance-unnecessary-value-param)
auto consume(Iterator first, Sentinel last, Number number) {
  return consume(detail::iterator_pair<Iterator, Sentinel>{std::move(first), std::move(last)},
                 std::move(number));
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_CONSUME_HPP
