// Spans that are no block of a program: those that it has measured itself, and ranges of a
// timeline.
#ifndef LOTUS_RECORD_SPAN_HPP
#define LOTUS_RECORD_SPAN_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/scope.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The tag of a range. A number that its name ends in is kept apart, so that a million iterations
/// have one name; leading zeros belong to the name.
LOTUS_DETAIL_PER_MODULE record_tag range_tag(std::string_view name) noexcept;

}  // namespace detail

/// A stretch of this thread's time, to the end of the block, that has a name on the timeline of
/// lotus-tool and, with LOTUS_ANNOTATE, of other profilers: for orientation, in no log of Lotus'
/// format and in no statistics. For what is to be measured take LOTUS_SCOPE.
/// Errors: none thrown. Thread safety: any thread; the range itself belongs to one.
class range : detail::span {
 public:
  /// @param name  interned by content, without the number at its end: needs to live only for this
  /// call.
  explicit range(std::string_view name) noexcept
      : span{[name] { return detail::range_tag(name); }} {}
  ~range() = default;
};

/// Begins a range that range_pop() ends, for where no block does. Ranges nest; each thread, and
/// each shared object of the program, has its own. Costs an allocation.
LOTUS_DETAIL_PER_MODULE void range_push(std::string_view name);

/// Ends the range of this thread that was pushed last; without one nothing.
LOTUS_DETAIL_PER_MODULE void range_pop() noexcept;

namespace detail {

/// Nanoseconds of a time point of std::chrono, without <chrono>.
template <class TimePoint>
constexpr std::int64_t ns_since_epoch(const TimePoint& at) noexcept {
  using period = typename TimePoint::period;
  const auto count = at.time_since_epoch().count();
  if constexpr (std::is_integral_v<std::decay_t<decltype(count)>> &&
                1'000'000'000 * period::num % period::den == 0) {
    return static_cast<std::int64_t>(count) * (1'000'000'000 * period::num / period::den);
  } else {
    return static_cast<std::int64_t>(static_cast<long double>(count) * 1e9L * period::num /
                                     period::den);
  }
}

}  // namespace detail

/// Logs the operation "S<name>" of this thread from `begin` to `end`. Less than a microsecond off,
/// and more the longer ago: clocks drift.
/// A span that overlaps a scope of this thread partly, as the time in a queue may, is told by
/// lotus-tool as one that cannot be; an async_scope may overlap anything.
/// @param name        interned by content: needs to live only for this call.
/// @param begin, end  of std::chrono::steady_clock, in whatever unit, or of another clock that
/// counts as CLOCK_MONOTONIC does.
/// Errors: none thrown. Thread safety: any thread.
template <class Begin, class End>
void record_span(std::string_view name, const Begin& begin, const End& end) noexcept {
  static_assert(
      Begin::clock::is_steady && std::is_same_v<typename Begin::clock, typename End::clock>,
      "both are times of one steady clock");
  if (!detail::is_recording()) return;
  const detail::given_ticks ticks = detail::join_session(true).ticks_of_span(
      detail::ns_since_epoch(begin), detail::ns_since_epoch(end));
  detail::push(ticks.begin, ticks.end, detail::operation_tag(name));
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_SPAN_HPP
