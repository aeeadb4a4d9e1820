// Provides counters: numbers over time, such as the depth of a queue or the number of bytes in use.
#ifndef LOTUS_COUNTER_HPP
#define LOTUS_COUNTER_HPP

#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/scope.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

LOTUS_DETAIL_ALWAYS_INLINE void count(record_tag name, std::int64_t value) noexcept {
  push(now_ticks(), static_cast<std::uint64_t>(value), {event_kind::counter, name.value()});
}

}  // namespace detail

/// Sets the counter with this name to this value. All threads of the process share the counter. Its
/// values are stored only in the hidden side log, because the text format cannot express counters.
/// @param name  copied, so it must be valid only during this call.
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

#endif  // LOTUS_COUNTER_HPP
