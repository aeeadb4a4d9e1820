// The one table of what a record of each kind is.
#ifndef LOTUS_RECORD_RECORD_KINDS_HPP
#define LOTUS_RECORD_RECORD_KINDS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/ring_layout.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// What a record's value says.
enum class record_value : std::uint8_t {
  name,             ///< the id of a name: the line begins with that
  name_and_number,  ///< likewise; the number stands in the line beside
  batch,            ///< a batch's number: it follows the line's prefix
  none,             ///< nothing that is known; the prefix is all
};

/// What stands as the duration in a record's line.
enum class written_duration : std::uint8_t {
  measured,
  measured_unlike_placeholder,  ///< one ns more where it happens to be just placeholder_ns
  placeholder,                  ///< placeholder_ns, for events
  none,                         ///< nothing: its only line is one beside
};

/// The duration that marks a line as no real span.
inline constexpr std::int64_t placeholder_ns = 1000;

struct record_kind {
  event_kind kind;
  log_role role;  ///< of the log that its lines go to
  record_value value;
  written_duration duration;
  std::string_view prefix;  ///< how its lines begin; empty where they begin with a name
  /// How its line in the log beside begins; empty where it has none there.
  std::string_view beside = {};

  /// What a span of this kind is called on a profiler's timeline; empty where that is its name.
  constexpr std::string_view task() const noexcept {
    return prefix.size() < 2 ? prefix : prefix.substr(1, prefix.size() - 2);
  }
};

/// The table: a row for each kind. One that has none here is an error, whatever the build's
/// warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
constexpr record_kind row_of(event_kind kind) noexcept {
  using value = record_value;
  using lasts = written_duration;
  constexpr log_role main = log_role::main;
  constexpr log_role worker = log_role::worker;
  constexpr log_role beside = log_role::beside;
  switch (kind) {
    case event_kind::operation:
      return {kind, worker, value::name, lasts::measured, ""};
    case event_kind::batch_preprocessed:
      return {kind, worker, value::batch, lasts::measured, "SBatchPreprocessed_"};
    case event_kind::batch_wait:
      return {kind, main, value::batch, lasts::measured_unlike_placeholder, "SBatchWait_"};
    case event_kind::batch_arrived:
      return {kind, main, value::batch, lasts::placeholder, "SBatchWait_"};
    case event_kind::batch_consumed:
      return {kind, main, value::batch, lasts::placeholder, "SBatchConsumed_"};
    case event_kind::batch_queued:
      return {kind, main, value::batch, lasts::placeholder, "SBatchQueued_"};
    case event_kind::stage:
      return {kind, worker, value::name_and_number, lasts::measured, "", "stage,"};
    case event_kind::async_piece:
      return {kind, worker, value::name_and_number, lasts::measured, "", "piece,"};
    case event_kind::counter:
      return {kind, beside, value::name, lasts::none, "", "counter,"};
    case event_kind::batch_takes:
      return {kind, beside, value::batch, lasts::none, "", "takes,,"};
    case event_kind::off_cpu:
      return {kind, beside, value::none, lasts::none, "", "off_cpu,,"};
    case event_kind::loader:
      return {kind, beside, value::none, lasts::none, ""};  // tells where lines go, and has none
    case event_kind::stage_number:
      return {kind, beside, value::name, lasts::none, "", "number,"};
    case event_kind::arguments:
      return {kind, beside, value::name, lasts::none, "", "args,"};
    case event_kind::range:
      return {kind, beside, value::name_and_number, lasts::measured, "", "range,"};
    case event_kind::allocated:
      return {kind, beside, value::name_and_number, lasts::none, "", "allocated,"};
    case event_kind::freed:
      return {kind, beside, value::name_and_number, lasts::none, "", "freed,"};
    case event_kind::retained:
      return {kind, beside, value::name_and_number, lasts::none, "", "retained,"};
    case event_kind::heap_peak:
      return {kind, beside, value::name_and_number, lasts::none, "", "peak,"};
    case event_kind::heap:
      return {kind, beside, value::name_and_number, lasts::none, "", "heap,"};
    case event_kind::held:
      return {kind, beside, value::name_and_number, lasts::none, "", "held,"};
    case event_kind::heap_total:
      return {kind, beside, value::name_and_number, lasts::none, "", "total,"};
    case event_kind::aggregated:
      return {kind, beside, value::name_and_number, lasts::measured, "", "aggregated,"};
    case event_kind::none:
      break;
  }
  // A record of a damaged ring file, or of a later version.
  return {event_kind::none, worker, value::none, lasts::measured, "Skind_lost,"};
}
#pragma GCC diagnostic pop

/// The rows by number, those of numbers that are no kind too.
LOTUS_DETAIL_PER_MODULE inline constexpr auto record_kinds = [] {
  std::array<record_kind, 256> rows{};
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = row_of(static_cast<event_kind>(i));
  return rows;
}();

LOTUS_DETAIL_ALWAYS_INLINE const record_kind& kind_of(record_tag tag) noexcept {
  return record_kinds[static_cast<std::uint8_t>(tag.kind())];
}

constexpr bool has_name(const record_kind& kind) noexcept {
  return kind.value == record_value::name || kind.value == record_value::name_and_number;
}

/// Whether its second word is a number beside that of its value: what is told of the heap.
constexpr bool counts_heap(event_kind kind) noexcept {
  return kind >= event_kind::allocated && kind <= event_kind::heap_total;
}

/// The id of the name of a record that has one.
constexpr std::uint32_t name_of(const record_kind& kind, record_tag tag) noexcept {
  const bool both = kind.value == record_value::name_and_number;
  return static_cast<std::uint32_t>(both ? tag.value() >> 32 : tag.value());
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_RECORD_KINDS_HPP
