// Provides what is recorded without a scope: record_span() for an interval that the program
// measured itself, ranges, which appear only on timelines, and counters, which are numbers over
// time.
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

/// Returns the tag of a range. A number at the end of the name is stored separately, so that a
/// million numbered iterations such as "iteration 7" need only one name. Leading zeros of the
/// number stay in the name.
LOTUS_DETAIL_PER_MODULE record_tag range_tag(std::string_view name) noexcept;

}  // namespace detail

/// Shows the time from here to the end of the block, with a name, on the timeline of lotus-tool. If
/// the environment variable LOTUS_ANNOTATE is set, the timelines of other profilers show it too.
/// Text logs and statistics do not contain ranges: to measure an operation, use LOTUS_SCOPE.
/// Errors: none thrown. Thread safety: any thread; each range object belongs to one thread.
class range : detail::span {
 public:
  /// @param name  copied without its final number, so it needs to exist only during this call.
  [[nodiscard]] explicit range(std::string_view name) noexcept
      : span{[name] { return detail::range_tag(name); }} {}
  ~range() = default;
};

namespace detail {

/// Converts a std::chrono time point to ns since its clock's epoch, without including <chrono>.
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

/// Whether T is a time point of a steady clock.
template <class T, class = void>
inline constexpr bool is_steady_time = false;
template <class T>
inline constexpr bool is_steady_time<T, std::void_t<typename T::clock, typename T::period>> =
    T::clock::is_steady;

}  // namespace detail

/// Records an operation "S<name>" of this thread that lasted from `begin` to `end`. Recent times
/// are accurate to less than a microsecond; the error grows with their age, because clocks drift.
/// The operation must not partly overlap a scope of this thread, which lotus-tool would report as
/// an error; use an async_scope for intervals that may overlap, such as times in a queue.
/// @param name  copied into a table of names, so it needs to exist only during this call.
/// @param begin, end  times of std::chrono::steady_clock in any unit, or of another clock that
/// counts like CLOCK_MONOTONIC.
/// Errors: none thrown. Thread safety: any thread.
template <class Begin, class End>
void record_span(std::string_view name, const Begin& begin, const End& end) noexcept {
  static_assert(
      detail::is_steady_time<Begin> && detail::is_steady_time<End>,
      "record_span takes times of std::chrono::steady_clock; for a number of ns of "
      "CLOCK_MONOTONIC: std::chrono::steady_clock::time_point(std::chrono::nanoseconds(n))");
  if constexpr (detail::is_steady_time<Begin> && detail::is_steady_time<End>) {
    static_assert(std::is_same_v<typename Begin::clock, typename End::clock>,
                  "record_span takes two times of the same clock");
    if (!detail::is_recording()) return;
    const detail::given_ticks ticks = detail::join_session(true).ticks_of_span(
        detail::ns_since_epoch(begin), detail::ns_since_epoch(end));
    detail::push(ticks.begin, ticks.end, detail::operation_tag(name));
  }
}

namespace detail {

LOTUS_DETAIL_ALWAYS_INLINE void count(record_tag name, std::int64_t value) noexcept {
  push(now_ticks(), static_cast<std::uint64_t>(value), {event_kind::counter, name.value()});
}

}  // namespace detail

/// Sets the counter with this name to this value. All threads of the process share the counter. Its
/// values are stored only in the hidden side log, because the text format cannot express counters.
/// @param name   copied, so it must be valid only during this call.
/// @param value  in whatever unit the program uses; lotus-tool shows the number as it is.
/// Errors: none thrown. Thread safety: any thread.
LOTUS_DETAIL_ALWAYS_INLINE void counter(std::string_view name, std::int64_t value) noexcept {
  if (detail::is_recording()) detail::count(detail::operation_tag(name), value);
}
/// Sets a counter whose name is known at compile time, so that its id is looked up only once.
template <class Here, bool Fixed>
LOTUS_DETAIL_ALWAYS_INLINE void counter(const detail::place<Here, Fixed>& place,
                                        std::int64_t value) noexcept {
  if (detail::is_recording()) detail::count(place.tag(), value);
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_SPAN_HPP
