// Counters: numbers over time, such as the depth of a queue or the number of bytes held.
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

/// Sets the counter of this name to this value; the whole process shares it. The value is stored
/// only in the hidden side log, because logs of Lotus' format have no counters.
/// @param name  interned by content: needs to live only for this call.
/// Errors: none thrown. Thread safety: any thread.
LOTUS_DETAIL_ALWAYS_INLINE void counter(std::string_view name, std::int64_t value) noexcept {
  if (detail::is_recording()) detail::count(detail::operation_tag(name), value);
}
/// For a name known at compile time: its id is looked up only once.
template <class Here, bool Fixed>
LOTUS_DETAIL_ALWAYS_INLINE void counter(const detail::place<Here, Fixed>& place,
                                        std::int64_t value) noexcept {
  if (detail::is_recording()) detail::count(place.tag(), value);
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COUNTER_HPP
