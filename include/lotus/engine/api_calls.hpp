// Defines the slow paths of scopes, batches and ranges: functions that are called only in rare
// cases.
#ifndef LOTUS_ENGINE_API_CALLS_HPP
#define LOTUS_ENGINE_API_CALLS_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>

#include "lotus/async_scope.hpp"
#include "lotus/config.hpp"
#include "lotus/deprecated.hpp"
#include "lotus/record/operation_run.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record_span.hpp"
#include "lotus/scope.hpp"
#include "lotus/scope_arguments.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM record_tag
known_tag::first_tag(std::string_view name) noexcept {
  const record_tag tag = operation_tag(name);
  // The tag is not cached if there was no memory for the name, because there may be memory later.
  if (tag.value() != unnamed_id) tag_.store(tag, std::memory_order_relaxed);
  return tag;
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void span::record_before(record_tag event,
                                                             std::uint64_t word) const noexcept {
  if (is_recording()) push(begin_ticks_, word, event);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void span::report_crossed_threads(record_tag tag) noexcept {
  join_session(true).crossed_threads(tag);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void span::end_annotated(std::uint64_t begin_ticks,
                                                             std::uint64_t end_ticks,
                                                             record_tag tag) noexcept {
  end_annotation(begin_ticks, tag);
  push(begin_ticks, end_ticks, tag);
}

/// Whether a measured_span with this tag is shown on other profilers' timelines.
inline bool has_task(record_tag tag) noexcept {
  return tag.kind() == event_kind::async_segment || tag.kind() == event_kind::batch_preprocessed ||
         tag.kind() == event_kind::batch_wait;
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM bool measured_span::begin_slow(record_tag tag) noexcept {
  if (!is_recording()) return false;
  if (recording_mode() != recording::annotated) return true;
  const services& session = join_session(true);
  has_task(tag) ? session.begin_task(tag) : session.begin_heap(tag);
  return true;
}
LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void measured_span::end_slow(std::uint64_t begin_ticks,
                                                                 record_tag tag) noexcept {
  if (tag.empty()) return;
  const services& session = join_session(true);
  has_task(tag) ? session.end_task(begin_ticks, tag) : session.end_heap(begin_ticks, tag, tag);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void operation_run::begin_nameless() noexcept {
  join_session(true).begin_heap(whole_);
  nameless_ = true;
}
LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void operation_run::end_part(record_tag tag) noexcept {
  if (nameless_) {
    join_session(true).end_heap(last_ticks_, whole_, tag);
  } else if (running_.kind() != nothing_yet.kind()) {
    end_annotation(last_ticks_, running_);
  }
  nameless_ = false;
}
LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void operation_run::end_early() noexcept {
  if (running_.kind() == nothing_yet.kind()) {
    first_ticks_ = 0;
  } else {
    ended(running_);
  }
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void take_async_ids() noexcept {
  const std::uint32_t first = join_session(true).take_async_ids();
  this_async_ids = {first, first + async_ids_at_once};
}

LOTUS_DETAIL_SEAM record_tag range_tag(std::string_view name) noexcept {
  constexpr std::size_t max_digits = 9;
  std::uint32_t number = 0;
  std::uint32_t unit = 1;
  std::size_t digits = 0;
  for (std::size_t i = name.size(); i-- > 0 && digits < max_digits; ++digits, unit *= 10) {
    if (name[i] < '0' || name[i] > '9') break;
    number += unit * static_cast<std::uint32_t>(name[i] - '0');
  }
  const std::size_t text = name.size() - digits;
  const bool split = digits > 0 && text > 0 && (digits == 1 || name[text] != '0') &&
                     (name[text - 1] < '0' || name[text - 1] > '9');
  const record_tag of = operation_tag(split ? name.substr(0, text) : name);
  return {event_kind::range, static_cast<std::uint32_t>(of.value()),
          split ? number : number_not_in_tag};
}

struct open_range {
  range of;
  open_range* around;
};

LOTUS_DETAIL_PER_MODULE inline thread_local open_range* innermost_range = nullptr;

template <class Number>
void arguments_text::put_printed(const char* format, Number number) noexcept {
  char digits[32];
  const int length = std::snprintf(digits, sizeof digits, format, number);
  add_raw({digits, static_cast<std::size_t>(length)});
}
LOTUS_DETAIL_SEAM void arguments_text::put_number(long long number) noexcept {
  put_printed("%lld", number);
}
LOTUS_DETAIL_SEAM void arguments_text::put_number(unsigned long long number) noexcept {
  put_printed("%llu", number);
}
LOTUS_DETAIL_SEAM void arguments_text::put_number(double number) noexcept {
  put_printed("%g", number);
}

LOTUS_DETAIL_SEAM void arguments_text::add_raw(std::string_view text,
                                               std::size_t kept_free) noexcept {
  std::size_t room = sizeof text_ - kept_free - bytes_;
  if (kept_free > 0 && cut_) return;
  if (text.size() > room) {
    // The text is cut earlier if it would otherwise end inside a UTF-8 character.
    while (room > 0 && (static_cast<unsigned char>(text[room]) & 0xC0U) == 0x80U) --room;
    cut_ = true;
  } else {
    room = text.size();
  }
  if (room > 0) std::memcpy(text_ + bytes_, text.data(), room);
  bytes_ += room;
}

}  // namespace detail

LOTUS_DETAIL_SEAM void range_push(std::string_view name) {
  detail::innermost_range = new detail::open_range{range{name}, detail::innermost_range};
}

LOTUS_DETAIL_SEAM void range_pop() noexcept {
  const detail::open_range* const ended = detail::innermost_range;
  if (ended == nullptr) return;
  detail::innermost_range = ended->around;
  delete ended;
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_ENGINE_API_CALLS_HPP
