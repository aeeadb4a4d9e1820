// Implements the C functions of lotus/lotus.h.
#ifndef LOTUS_ENGINE_C_CALLS_HPP
#define LOTUS_ENGINE_C_CALLS_HPP

#include "lotus/config.hpp"
#if LOTUS_SUPPORTED
  #include <sys/prctl.h>
#endif

#include <cstdint>
#include <string_view>

#include "lotus/batch.hpp"
#include "lotus/lotus.h"
#include "lotus/record/record.hpp"
#include "lotus/record_span.hpp"
#include "lotus/scope.hpp"
#include "lotus/session.hpp"
#include "lotus/stage.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

// lotus_name and lotus_span contain a tag as a number.
inline record_tag tag_from(std::uint64_t word) noexcept {
  return {static_cast<event_kind>(word >> record_tag::value_bits), word};
}
inline std::uint64_t word_of(record_tag tag) noexcept {
  return static_cast<std::uint64_t>(tag.kind()) << record_tag::value_bits | tag.value();
}

/// Returns the tag of an operation with this name. Like known_tag, stores it after the first call.
inline record_tag tag_of(lotus_name& name) noexcept {
  const record_tag known = tag_from(__atomic_load_n(&name.id, __ATOMIC_RELAXED));
  if (LOTUS_DETAIL_LIKELY(!known.empty())) return known;
  const record_tag tag = operation_tag(name.text == nullptr ? std::string_view{} : name.text);
  if (tag.value() != unnamed_id) __atomic_store_n(&name.id, word_of(tag), __ATOMIC_RELAXED);
  return tag;
}

LOTUS_DETAIL_ALWAYS_INLINE lotus_span begin_c_span(record_tag tag, std::uint64_t number) noexcept {
  measured_span measured;
  measured.begin(tag);
  return {measured.begin_ticks(), word_of(tag), number};
}

/// Ends a batch or a wait, whose number was not known before.
template <event_kind Kind>
void end_numbered(lotus_span& span, std::uint64_t number) noexcept {
  measured_span measured{span.begin_ticks};
  if (!measured.runs()) return;
  look_at_batch();
  if constexpr (Kind == event_kind::batch_wait) publish_end_of_wait();
  measured.end(batch_tag(Kind, number));
  span.begin_ticks = 0;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

extern "C" {

LOTUS_DETAIL_SEAM int lotus_start(const char* log_file) {
  const bool started = log_file == nullptr ? lotus::start() : lotus::start(log_file);
  return started ? 1 : 0;
}
LOTUS_DETAIL_SEAM void lotus_stop() {
  lotus::stop();
}

LOTUS_DETAIL_SEAM lotus_span lotus_begin(lotus_name* name) {
  if (!lotus::detail::is_recording()) return {};
  return lotus::detail::begin_c_span(lotus::detail::tag_of(*name), 0);
}
LOTUS_DETAIL_SEAM lotus_span lotus_begin_stage(lotus_name* name, std::uint64_t number) {
  using namespace lotus::detail;
  if (!is_recording()) return {};
  const auto id = static_cast<std::uint32_t>(tag_of(*name).value());
  const bool fits = number < number_not_in_tag;
  return begin_c_span(
      {event_kind::stage, id, fits ? static_cast<std::uint32_t>(number) : number_not_in_tag},
      number);
}
LOTUS_DETAIL_SEAM lotus_span lotus_begin_batch() {
  using namespace lotus::detail;
  if (!is_recording()) return {};
  look_at_batch();
  return begin_c_span({event_kind::batch_preprocessed, unknown_batch}, 0);
}
LOTUS_DETAIL_SEAM lotus_span lotus_begin_wait() {
  using namespace lotus::detail;
  if (!is_recording()) return {};
  look_at_batch();
  publish_wait();
  return begin_c_span({event_kind::batch_wait, unknown_batch}, 0);
}

LOTUS_DETAIL_SEAM void lotus_end(lotus_span* span) {
  using namespace lotus::detail;
  measured_span measured{span->begin_ticks};
  if (!measured.runs()) return;
  const record_tag tag = tag_from(span->tag);
  if (LOTUS_DETAIL_UNLIKELY(span->number >= number_not_in_tag)) {
    push(span->begin_ticks, span->number, {event_kind::stage_number, tag.value() >> 32});
  }
  measured.end(tag);
  span->begin_ticks = 0;
}
LOTUS_DETAIL_SEAM void lotus_end_batch(lotus_span* span, std::uint64_t number) {
  lotus::detail::end_numbered<lotus::detail::event_kind::batch_preprocessed>(*span, number);
}
LOTUS_DETAIL_SEAM void lotus_end_wait(lotus_span* span, std::uint64_t number) {
  lotus::detail::end_numbered<lotus::detail::event_kind::batch_wait>(*span, number);
}
LOTUS_DETAIL_SEAM void lotus_discard(lotus_span* span) {
  using namespace lotus::detail;
  measured_span measured{span->begin_ticks};
  if (!measured.runs()) return;
  const record_tag tag = tag_from(span->tag);
  if (tag.kind() == event_kind::batch_wait) publish_end_of_wait();
  measured.forget(tag);
  span->begin_ticks = 0;
}

LOTUS_DETAIL_SEAM void lotus_consumed(std::uint64_t number) {
  lotus::batch_consumed(number);
}
LOTUS_DETAIL_SEAM void lotus_takes(std::uint64_t batch, std::uint64_t item) {
  lotus::batch_takes(batch, item);
}
LOTUS_DETAIL_SEAM void lotus_thread_name(const char* name) {
#if LOTUS_SUPPORTED
  prctl(PR_SET_NAME, name == nullptr ? "" : name);
#else
  static_cast<void>(name);
#endif
}
LOTUS_DETAIL_SEAM void lotus_count(lotus_name* name, std::int64_t value) {
  if (lotus::detail::is_recording()) lotus::detail::count(lotus::detail::tag_of(*name), value);
}

}  // extern "C"

#endif  // LOTUS_ENGINE_C_CALLS_HPP
