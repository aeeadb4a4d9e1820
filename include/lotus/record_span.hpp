// Spans that somebody else has measured: callbacks, events of a device.
#ifndef LOTUS_RECORD_SPAN_HPP
#define LOTUS_RECORD_SPAN_HPP

#include <chrono>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/scope.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN

/// Logs the operation "S<name>" of this thread from `begin` to `end`. Less than a microsecond off,
/// and more the longer ago: clocks drift.
/// A span that overlaps a scope of this thread partly, as the time in a queue may, is told by
/// lotus-tool as one that cannot be; an async_scope may overlap anything.
/// @param name  interned by content: needs to live only for this call.
/// Errors: none thrown. Thread safety: any thread.
inline void record_span(std::string_view name, std::chrono::steady_clock::time_point begin,
                        std::chrono::steady_clock::time_point end) noexcept {
  if (!detail::is_recording()) return;
  const auto ticks_at = [](std::chrono::steady_clock::time_point at) {
    const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch());
    return detail::join_session(true).ticks_at(since.count());
  };
  detail::push(ticks_at(begin), ticks_at(end), detail::operation_tag(name));
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_SPAN_HPP
