// Spans that are no block of a program: those that it has measured itself, and ranges of a
// timeline.
#ifndef LOTUS_RECORD_SPAN_HPP
#define LOTUS_RECORD_SPAN_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/scope.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The tag of a range. A number that its name ends in is kept apart, so that a million iterations
/// have one name; leading zeros belong to the name.
LOTUS_DETAIL_PER_MODULE inline record_tag range_tag(std::string_view name) noexcept {
  constexpr std::size_t most_digits = 9;
  std::uint32_t number = 0;
  std::uint32_t unit = 1;
  std::size_t digits = 0;
  for (std::size_t i = name.size(); i-- > 0 && digits < most_digits; ++digits, unit *= 10) {
    if (name[i] < '0' || name[i] > '9') break;
    number += unit * static_cast<std::uint32_t>(name[i] - '0');
  }
  const std::size_t text = name.size() - digits;
  const bool split = digits > 0 && text > 0 && (digits == 1 || name[text] != '0') &&
                     (name[text - 1] < '0' || name[text - 1] > '9');
  const record_tag of = operation_tag(split ? name.substr(0, text) : name);
  return {event_kind::range, static_cast<std::uint32_t>(of.value()),
          split ? number : large_stage_number};
}

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

namespace detail {

struct open_range {
  range of;
  open_range* around;
};

LOTUS_DETAIL_PER_MODULE inline thread_local open_range* innermost_range = nullptr;

}  // namespace detail

/// Begins a range that range_pop() ends, for where no block does. Ranges nest; each thread, and
/// each shared object of the program, has its own. Costs an allocation.
LOTUS_DETAIL_PER_MODULE inline void range_push(std::string_view name) {
  detail::innermost_range = new detail::open_range{range{name}, detail::innermost_range};
}

/// Ends the range of this thread that was pushed last; without one nothing.
LOTUS_DETAIL_PER_MODULE inline void range_pop() noexcept {
  const detail::open_range* const ended = detail::innermost_range;
  if (ended == nullptr) return;
  detail::innermost_range = ended->around;
  delete ended;
}

/// Logs the operation "S<name>" of this thread from `begin` to `end`. Less than a microsecond off,
/// and more the longer ago: clocks drift.
/// A span that overlaps a scope of this thread partly, as the time in a queue may, is told by
/// lotus-tool as one that cannot be; an async_scope may overlap anything.
/// @param name  interned by content: needs to live only for this call.
/// Errors: none thrown. Thread safety: any thread.
inline void record_span(std::string_view name, std::chrono::steady_clock::time_point begin,
                        std::chrono::steady_clock::time_point end) noexcept {
  if (!detail::is_recording()) return;
  const auto ns_at = [](std::chrono::steady_clock::time_point at) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
  };
  const detail::given_ticks ticks =
      detail::join_session(true).ticks_of_span(ns_at(begin), ns_at(end));
  detail::push(ticks.begin, ticks.end, detail::operation_tag(name));
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_SPAN_HPP
