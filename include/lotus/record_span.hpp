// Spans that are not blocks of a program: spans that the program measured itself, and timeline
// ranges.
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
/// million iterations share one name; leading zeros belong to the name.
LOTUS_DETAIL_PER_MODULE record_tag range_tag(std::string_view name) noexcept;

}  // namespace detail

/// A named range of this thread's time, to the end of the block, for orientation: shown on the
/// timeline of lotus-tool and, with LOTUS_ANNOTATE, of other profilers, but in no log of Lotus'
/// format and in no statistics. To measure something, use LOTUS_SCOPE.
/// Errors: none thrown. Thread safety: any thread; the range itself belongs to one.
class range : detail::span {
 public:
  /// @param name  interned by content, without the number at its end: needs to live only for this
  /// call.
  explicit range(std::string_view name) noexcept
      : span{[name] { return detail::range_tag(name); }} {}
  ~range() = default;
};

/// Begins a range that range_pop() ends, for ranges that do not match a block. Ranges nest; each
/// thread has its own in each shared object of the program. Costs an allocation.
LOTUS_DETAIL_PER_MODULE void range_push(std::string_view name);

/// Ends the range that this thread pushed last; does nothing if there is none.
LOTUS_DETAIL_PER_MODULE void range_pop() noexcept;

namespace detail {

/// Returns the nanoseconds of a std::chrono time point, without including <chrono>.
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

/// Logs the operation "S<name>" of this thread from `begin` to `end`. Accurate to less than a
/// microsecond for recent times; the error grows with age, because clocks drift. If a span partly
/// overlaps a scope of this thread, as time in a queue may, lotus-tool reports it as impossible; an
/// async_scope may overlap anything.
/// @param name        interned by content: needs to live only for this call.
/// @param begin, end  times of std::chrono::steady_clock in any unit, or of another clock that
/// counts like CLOCK_MONOTONIC.
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
