// Provides the table that describes each kind of record: its log, its lines, its numbers, its
// encoding in compact blocks and its drawing on a timeline. The code that writes logs and the code
// that reads them both use the table.
#ifndef LOTUS_FORMAT_RECORD_KINDS_HPP
#define LOTUS_FORMAT_RECORD_KINDS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/ring_layout.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// What the value in a record's tag (its first word) consists of.
enum class record_value : std::uint8_t {
  name,             ///< the id of a name; the line begins with that name
  name_and_number,  ///< the id of a name and a 32-bit number
  number,           ///< a 56-bit number
  none,             ///< nothing; the record's line, if it has one, consists of its prefix and times
};

/// Which duration a record's text line contains.
enum class written_duration : std::uint8_t {
  measured,
  measured_unlike_placeholder,  ///< the measured duration, but never placeholder_ns
  placeholder,                  ///< always placeholder_ns, because the record is an event
  none,                         ///< nothing: the record has only a line in the side log
};

/// The duration that marks a line as an event instead of a span.
inline constexpr std::int64_t placeholder_ns = 1000;

/// How a record is drawn on a timeline.
enum class record_drawing : std::uint8_t {
  nothing,  ///< not drawn, because it is a total or a relation between other records
  span,     ///< from its start to its end
  step,     ///< from its start to the next wait of its thread
  moment,
  counter,  ///< a value over time
  /// drawn as additional data of an operation: the one with the same start time, whose record
  /// follows this record
  ahead,
  /// drawn as an interval before this record's time that interrupts the spans around it, such as a
  /// time off the CPU
  gap,
};

/// The meaning and unit of a number in a record.
enum class record_quantity : std::uint8_t {
  none,    ///< the field is unused
  batch,   ///< number of a batch
  item,    ///< number of an item
  number,  ///< number of a batch, item, request or operation, or the number at the end of a name
  value,   ///< value of a counter, in the program's unit
  off_cpu_ns,
  run_queue_ns,  ///< the part of off_cpu_ns during which the thread waited for a CPU
  bytes,         ///< bytes of heap memory; for heap_total with count 1, a number of calls
  count,         ///< calls, blocks or units; for heap_total it selects the meaning of `bytes`
};

/// The part of a record in which a number is stored.
enum class field_source : std::uint8_t { number_with_name, value, second_word };

/// The range of a number in the text of a line.
enum class field_type : std::uint8_t {
  natural,          ///< 0 to INT64_MAX
  natural_or_none,  ///< 0 to INT64_MAX, or an empty column if the record contains missing_number()
  integer,          ///< signed 64-bit number
  bits,             ///< unsigned 64-bit number
};

/// How a compact block encodes a number of a record.
enum class field_coding : std::uint8_t {
  /// Zigzag difference from the previous record with the same code; for a record's second field,
  /// from the previous record of any kind.
  difference,
  plain,
  one_more,  ///< the number plus one; 0 means that there is no number
};

/// Where a line contains a number: after the line's prefix, or in column A or B of a side-log line.
enum class line_column : std::uint8_t { prefix, a, b };

/// Describes one number of a record. If all members are zero, the record has no such number.
struct record_field {
  record_quantity quantity;
  field_source source;
  field_type type;
  field_coding coding;
  line_column column;
};

/// One row of the table record_kinds, which describes one kind of record. In a side-log line,
/// column A contains the duration if the kind has a measured one. A column for which the kind has
/// no number contains 0.
struct record_kind {
  event_kind kind;
  log_role role;  ///< the log that contains the kind's lines
  record_value value;
  written_duration duration;
  record_drawing drawing;
  /// Code for this kind in compact blocks. It must never change, even if the numbers of event_kind
  /// do. 0 if records of the kind have names: then each name gets its own code when it first
  /// occurs.
  std::uint8_t code;
  std::string_view prefix;  ///< beginning of the kind's lines; empty if they begin with a name
  /// Beginning of the kind's line in the side log; empty if it has no such line.
  std::string_view side_begin;
  /// The numbers of a record, in the order in which compact blocks contain them.
  record_field fields[2];
  /// The fields that columns A and B of a side-log line contain. The initializer of the table
  /// record_kinds sets them from `fields`.
  record_field columns[2] = {};

  /// Returns the name under which a profiler's timeline shows spans of this kind; empty if each
  /// span has a name of its own.
  constexpr std::string_view task() const noexcept {
    return prefix.size() < 2 ? prefix : prefix.substr(1, prefix.size() - 2);
  }
  /// Returns the first column of the kind's lines in the side log.
  constexpr std::string_view side_log_name() const noexcept {
    return side_begin.substr(0, side_begin.find(','));
  }
  /// Whether the record has a measured duration.
  constexpr bool lasts() const noexcept {
    return duration == written_duration::measured ||
           duration == written_duration::measured_unlike_placeholder;
  }
  /// Returns the index in `fields` of the field in this column of a line; -1 if there is none.
  constexpr int index_in(line_column column) const noexcept {
    for (int i = 0; i < 2; ++i) {
      if (fields[i].quantity != record_quantity::none && fields[i].column == column) return i;
    }
    return -1;
  }
  /// Returns the field in this column of a line; null if there is none.
  constexpr const record_field* field_in(line_column column) const noexcept {
    const int index = index_in(column);
    return index < 0 ? nullptr : &fields[index];
  }
};

/// Returns the row of a kind. The pragma makes the compiler report an error if a kind has no row.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
constexpr record_kind row_of(event_kind kind) noexcept {
  using what = record_quantity;
  using from = field_source;
  using type = field_type;
  using coding = field_coding;
  using column = line_column;
  using drawn = record_drawing;
  constexpr log_role main = log_role::main;
  constexpr log_role worker = log_role::worker;
  constexpr log_role side = log_role::side;
  constexpr record_value name = record_value::name;
  constexpr record_value both = record_value::name_and_number;
  constexpr record_value alone = record_value::number;
  constexpr written_duration timed = written_duration::measured;
  constexpr written_duration a_wait = written_duration::measured_unlike_placeholder;
  constexpr written_duration event = written_duration::placeholder;
  constexpr written_duration no_time = written_duration::none;
  constexpr std::uint8_t by_name = 0;

  // The batch number after the prefix of a batch's lines, such as 7 in SBatchWait_7.
  constexpr record_field batch{what::batch, from::value, type::natural, coding::difference,
                               column::prefix};
  // The number that is stored together with a name in the tag's value.
  constexpr record_field number{what::number, from::number_with_name, type::natural,
                                coding::difference, column::b};
  constexpr record_field maybe{what::number, from::number_with_name, type::natural_or_none,
                               coding::difference, column::b};
  constexpr record_field count{what::count, from::number_with_name, type::natural,
                               coding::difference, column::b};
  // Numbers that are stored in the second word of a record, or in the value bits of its first word.
  constexpr record_field bytes{what::bytes, from::second_word, type::natural, coding::plain,
                               column::a};
  constexpr record_field value{what::value, from::second_word, type::integer, coding::difference,
                               column::a};
  constexpr record_field whole{what::number, from::second_word, type::bits, coding::difference,
                               column::a};
  constexpr record_field parent{what::batch, from::value, type::natural, coding::difference,
                                column::a};
  constexpr record_field item{what::item, from::second_word, type::natural, coding::difference,
                              column::b};
  constexpr record_field off{what::off_cpu_ns, from::second_word, type::natural, coding::plain,
                             column::a};
  constexpr record_field queued{what::run_queue_ns, from::value, type::natural_or_none,
                                coding::one_more, column::b};

  // The columns of each row are: kind, log, value, duration, drawing, code, prefix, side-log
  // prefix, fields.
  switch (kind) {
    case event_kind::operation:
      return {kind, worker, name, timed, drawn::span, by_name, "", "", {}};
    case event_kind::batch_preprocessed:
      return {kind, worker, alone, timed, drawn::span, 2, "SBatchPreprocessed_", "", {batch}};
    case event_kind::batch_wait:
      return {kind, main, alone, a_wait, drawn::span, 3, "SBatchWait_", "", {batch}};
    case event_kind::batch_arrived:
      return {kind, main, alone, event, drawn::moment, 4, "SBatchWait_", "", {batch}};
    case event_kind::batch_consumed:
      return {kind, main, alone, event, drawn::step, 5, "SBatchConsumed_", "", {batch}};
    case event_kind::batch_queued:
      return {kind, main, alone, event, drawn::moment, 6, "SBatchQueued_", "", {batch}};
    case event_kind::stage:
      return {kind, worker, both, timed, drawn::span, by_name, "", "stage,", {maybe}};
    case event_kind::async_segment:
      return {kind, worker, both, timed, drawn::span, by_name, "", "piece,", {number}};
    case event_kind::counter:
      return {kind, side, name, no_time, drawn::counter, by_name, "", "counter,", {value}};
    case event_kind::batch_takes:
      return {kind, side, alone, no_time, drawn::nothing, 10, "", "takes,,", {parent, item}};
    case event_kind::off_cpu:
      return {kind, side, alone, no_time, drawn::gap, 11, "", "off_cpu,,", {off, queued}};
    // A record of this kind has no line. It selects the loader's folder in which the lines of the
    // records after it are written.
    case event_kind::loader:
      return {kind, side, record_value::none, no_time, drawn::nothing, 12, "", "", {}};
    case event_kind::stage_number:
      return {kind, side, name, no_time, drawn::ahead, by_name, "", "number,", {whole}};
    case event_kind::arguments:
      return {kind, side, name, no_time, drawn::ahead, by_name, "", "args,", {}};
    case event_kind::range:
      return {kind, side, both, timed, drawn::span, by_name, "", "range,", {maybe}};
    case event_kind::allocated:
      return {kind, side, both, no_time, drawn::ahead, by_name, "", "allocated,", {count, bytes}};
    case event_kind::freed:
      return {kind, side, both, no_time, drawn::ahead, by_name, "", "freed,", {count, bytes}};
    case event_kind::retained:
      return {kind, side, both, no_time, drawn::ahead, by_name, "", "retained,", {count, bytes}};
    case event_kind::heap_peak:
      return {kind, side, both, no_time, drawn::ahead, by_name, "", "peak,", {count, bytes}};
    case event_kind::heap:
      return {kind, side, both, no_time, drawn::counter, by_name, "", "heap,", {count, bytes}};
    case event_kind::held:
      return {kind, side, both, no_time, drawn::nothing, by_name, "", "held,", {count, bytes}};
    case event_kind::heap_total:
      return {kind, side, both, no_time, drawn::nothing, by_name, "", "total,", {count, bytes}};
    case event_kind::aggregated:
      return {kind, side, both, timed, drawn::gap, by_name, "", "aggregated,", {maybe}};
    case event_kind::none:
      break;
  }
  // Used for records of unknown kinds, from a damaged ring file or a later version of the library.
  constexpr record_value lost = record_value::none;
  return {event_kind::none, worker, lost, timed, drawn::span, by_name, "Skind_lost,", "", {}};
}
#pragma GCC diagnostic pop

/// Largest number of a kind, plus one.
inline constexpr std::size_t record_kind_count = [] {
  std::size_t count = 256;
  while (row_of(static_cast<event_kind>(count - 1)).kind == event_kind::none) --count;
  return count;
}();

/// The rows of all kinds; the index is the kind.
LOTUS_DETAIL_PER_MODULE inline constexpr auto record_kinds = [] {
  std::array<record_kind, record_kind_count> rows{};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = row_of(static_cast<event_kind>(i));
    for (const record_field& f : rows[i].fields) {
      if (f.quantity != record_quantity::none && f.column != line_column::prefix) {
        rows[i].columns[f.column == line_column::a ? 0 : 1] = f;
      }
    }
  }
  return rows;
}();

/// Returns the row of a kind; row 0 (event_kind::none) if the number is not that of a kind.
LOTUS_DETAIL_ALWAYS_INLINE const record_kind& kind_of(event_kind kind) noexcept {
  const auto number = static_cast<std::size_t>(kind);
  return record_kinds[number < record_kind_count ? number : 0];
}
LOTUS_DETAIL_ALWAYS_INLINE const record_kind& kind_of(record_tag tag) noexcept {
  return kind_of(tag.kind());
}

constexpr bool has_name(const record_kind& kind) noexcept {
  return kind.value == record_value::name || kind.value == record_value::name_and_number;
}

/// Whether the kind's lines have the three columns of a batch's line: prefix with number, start,
/// duration.
constexpr bool is_of_batch(const record_kind& kind) noexcept {
  return kind.value == record_value::number && !kind.prefix.empty();
}

/// Returns the id of the record's name. Call it only for kinds that have one.
constexpr std::uint32_t name_of(const record_kind& kind, record_tag tag) noexcept {
  const bool both = kind.value == record_value::name_and_number;
  return static_cast<std::uint32_t>(both ? tag.value() >> 32 : tag.value());
}

/// Returns the number that this field has in a record. Uses no branch, because the processor would
/// often mispredict it.
LOTUS_DETAIL_ALWAYS_INLINE constexpr std::uint64_t number_of(const record_field& field,
                                                             const record& r) noexcept {
  const std::uint64_t word =
      field.source == field_source::second_word ? r.end_ticks : r.tag.value();
  return field.source == field_source::number_with_name ? word & UINT32_MAX : word;
}

/// Returns the largest number that a record can store in this field.
constexpr std::uint64_t max_of(const record_field& field) noexcept {
  switch (field.source) {
    case field_source::number_with_name:
      return UINT32_MAX;
    case field_source::value:
      return (std::uint64_t{1} << record_tag::value_bits) - 1;
    case field_source::second_word:
      break;
  }
  return UINT64_MAX;
}

/// Returns the number that a record stores in this field if the number is missing.
constexpr std::uint64_t missing_number(const record_field& field) noexcept {
  return max_of(field);
}
static_assert(number_not_in_tag == UINT32_MAX &&
                  run_queue_unknown == (std::uint64_t{1} << record_tag::value_bits) - 1,
              "they are what missing_number() says");

/// Compile-time checks of the table. Without them, an error in a row would show only in a damaged
/// log.
namespace row_checks {

/// Whether the function `check` returns true for every row.
template <class Check>
constexpr bool all(Check&& check) {
  for (const record_kind& row : record_kinds) {
    if (row.kind != event_kind::none && !check(row)) return false;
  }
  return true;
}

static_assert(all([](const record_kind& row) {
                return is_of_batch(row)
                           ? row.role != log_role::side && row.prefix.size() > 7 &&
                                 row.prefix.substr(0, 6) == "SBatch" && row.prefix.back() == '_' &&
                                 row.side_begin.empty() && row.duration != written_duration::none
                           : row.prefix.empty();
              }),
              "lines of batches begin with SBatch..._, in the main or the worker log; all other "
              "lines begin with a name");
static_assert(all([](const record_kind& row) {
                return row.role != log_role::side || !row.side_begin.empty() ||
                       row.kind == event_kind::loader;
              }),
              "a kind whose lines stand beside says how these begin");
static_assert(all([](const record_kind& row) {
                const std::size_t name_bytes = row.side_log_name().size();
                return row.side_begin.empty() ||
                       (row.side_begin.size() <= 16 &&
                        row.side_begin.substr(name_bytes) == (has_name(row) ? "," : ",,"));
              }),
              "a line beside begins with at most 16 bytes: its kind, a comma and, where it has no "
              "name, one more");
static_assert(all([](const record_kind& row) {
                for (const record_kind& other : record_kinds) {
                  if (!row.side_begin.empty() && row.kind != other.kind &&
                      row.side_log_name() == other.side_log_name()) {
                    return false;
                  }
                }
                return true;
              }),
              "lines beside of two kinds begin differently");
static_assert(all([](const record_kind& row) {
                // With -fsanitize=undefined, g++ 12 compares no addresses in constants.
                for (int i = 0; i < 2; ++i) {
                  const record_field& f = row.fields[i];
                  if (f.quantity == record_quantity::none) continue;
                  const bool by_name = row.value == record_value::name_and_number;
                  const bool alone = row.value == record_value::number;
                  if (f.source == field_source::number_with_name && !by_name) return false;
                  if (f.source == field_source::value && !alone) return false;
                  if (f.source == field_source::second_word &&
                      row.duration != written_duration::none) {
                    return false;
                  }
                  if ((f.column == line_column::prefix) != is_of_batch(row)) return false;
                  if (f.column == line_column::a && row.lasts()) return false;
                  if (row.index_in(f.column) != i) return false;
                }
                return !is_of_batch(row) || row.index_in(line_column::prefix) >= 0;
              }),
              "a record has each of its numbers where its line and its value say");
static_assert(all([](const record_kind& row) {
                for (const record_field& f : row.fields) {
                  const bool none = f.type == field_type::natural_or_none;
                  if (none && f.source == field_source::second_word) return false;
                  if (f.coding == field_coding::one_more && !none) return false;
                }
                return true;
              }),
              "only a part of the value can be missing: all bits of the second word may be set");

}  // namespace row_checks

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_FORMAT_RECORD_KINDS_HPP
