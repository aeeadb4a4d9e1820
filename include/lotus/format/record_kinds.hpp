// The table that describes each kind of record: its log, its lines, its numbers, its encoding in
// compact blocks and its drawing on a timeline. Both writers and both readers use this table.
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

/// What a record's value contains.
enum class record_value : std::uint8_t {
  name,             ///< the id of a name; the line begins with that name
  name_and_number,  ///< the id of a name and a 32-bit number
  number,           ///< a 56-bit number
  none,             ///< neither; a line, if there is one, has only its prefix and times
};

/// What a record's line contains as its duration.
enum class written_duration : std::uint8_t {
  measured,
  measured_unlike_placeholder,  ///< one ns more if it is exactly placeholder_ns
  placeholder,                  ///< placeholder_ns, for events
  none,                         ///< nothing: the record has only a line in the side log
};

/// The duration that marks a line as an event instead of a span.
inline constexpr std::int64_t placeholder_ns = 1000;

/// How a record is drawn on a timeline.
enum class record_drawing : std::uint8_t {
  nothing,  ///< not drawn: a total, or a relation between other records
  span,     ///< from its begin to its end
  step,     ///< from its begin to the next wait of its thread
  moment,
  counter,  ///< a value over time
  ahead,    ///< describes the operation that begins at this time; that operation's own record
            ///< follows
  gap,      ///< time to cut out of the spans before this record's time
};

/// The meaning and unit of a number in a record.
enum class record_quantity : std::uint8_t {
  none,    ///< the field is unused
  batch,   ///< number of a batch
  item,    ///< number of an item
  number,  ///< number of a batch, item, request or asynchronous operation, or at the end of a name
  value,   ///< value of a counter, in the program's unit
  off_cpu_ns,
  run_queue_ns,  ///< the part of off_cpu_ns spent waiting for a CPU
  bytes,         ///< bytes of heap memory; calls for heap_total with count 1
  count,         ///< calls, blocks or units; for heap_total it selects what the bytes mean
};

/// Where the record stores the number.
enum class field_source : std::uint8_t { number_beside_name, value, second_word };

/// The range of a number in the text of a line.
enum class field_type : std::uint8_t {
  natural,          ///< 0 to INT64_MAX
  natural_or_none,  ///< 0 to INT64_MAX, or empty if the record contains missing_number()
  integer,          ///< signed
  bits,             ///< unsigned 64-bit number
};

/// How a compact block encodes the number.
enum class field_coding : std::uint8_t {
  difference,  ///< zigzag difference to the previous record of the same code; a second field: of
               ///< any code
  plain,
  one_more,  ///< the number plus one; 0: no number
};

/// Where a line contains the number: after its prefix, or in one of the last two columns of a
/// side-log line.
enum class line_column : std::uint8_t { prefix, a, b };

/// A number of a record. All zeros: no such number.
struct record_field {
  record_quantity quantity;
  field_source source;
  field_type type;
  field_coding coding;
  line_column column;
};

/// One row of the table. A column A or B without a field is written as 0; if a duration is
/// measured, it is written in column A.
struct record_kind {
  event_kind kind;
  log_role role;  ///< the log that its lines are written to
  record_value value;
  written_duration duration;
  record_drawing drawing;
  /// Identifies a kind without a name in compact blocks, independently of event_kind's numbers. 0:
  /// the kind has names, and each name gets a code when it first occurs.
  std::uint8_t code;
  std::string_view prefix;  ///< beginning of its lines; empty if they begin with a name
  /// Beginning of its line in the side log; empty if it has no such line.
  std::string_view beside;
  record_field fields[2];  ///< in the order in which compact blocks encode them
  /// The fields in columns A and B, if any; the table fills them in.
  record_field columns[2] = {};

  /// The name of such a span on a profiler's timeline; empty if the record has a name of its own.
  constexpr std::string_view task() const noexcept {
    return prefix.size() < 2 ? prefix : prefix.substr(1, prefix.size() - 2);
  }
  /// The first column of its lines in the side log.
  constexpr std::string_view beside_name() const noexcept {
    return beside.substr(0, beside.find(','));
  }
  /// Whether the record has a measured duration.
  constexpr bool lasts() const noexcept {
    return duration == written_duration::measured ||
           duration == written_duration::measured_unlike_placeholder;
  }
  /// The field in this column of a line; null if there is none.
  constexpr const record_field* field_in(line_column column) const noexcept {
    for (const record_field& f : fields) {
      if (f.quantity != record_quantity::none && f.column == column) return &f;
    }
    return nullptr;
  }
};

/// The table: one row for each kind. A missing row is an error under any warning level.
/// warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
constexpr record_kind row_of(event_kind kind) noexcept {
  using what = record_quantity;
  using from = field_source;
  using type = field_type;
  using told = field_coding;
  using column = line_column;
  using drawn = record_drawing;
  constexpr log_role main = log_role::main;
  constexpr log_role worker = log_role::worker;
  constexpr log_role beside = log_role::side;
  constexpr record_value name = record_value::name;
  constexpr record_value both = record_value::name_and_number;
  constexpr record_value alone = record_value::number;
  constexpr written_duration timed = written_duration::measured;
  constexpr written_duration a_wait = written_duration::measured_unlike_placeholder;
  constexpr written_duration event = written_duration::placeholder;
  constexpr written_duration no_time = written_duration::none;
  constexpr std::uint8_t by_name = 0;

  // In the prefix of a batch's lines.
  constexpr record_field batch{what::batch, from::value, type::natural, told::difference,
                               column::prefix};
  // Stored next to the name in the value.
  constexpr record_field number{what::number, from::number_beside_name, type::natural,
                                told::difference, column::b};
  constexpr record_field maybe{what::number, from::number_beside_name, type::natural_or_none,
                               told::difference, column::b};
  constexpr record_field count{what::count, from::number_beside_name, type::natural,
                               told::difference, column::b};
  // Stored in the second word.
  constexpr record_field bytes{what::bytes, from::second_word, type::natural, told::plain,
                               column::a};
  constexpr record_field value{what::value, from::second_word, type::integer, told::difference,
                               column::a};
  constexpr record_field whole{what::number, from::second_word, type::bits, told::difference,
                               column::a};
  constexpr record_field taker{what::batch, from::value, type::natural, told::difference,
                               column::a};
  constexpr record_field item{what::item, from::second_word, type::natural, told::difference,
                              column::b};
  constexpr record_field off{what::off_cpu_ns, from::second_word, type::natural, told::plain,
                             column::a};
  constexpr record_field queued{what::run_queue_ns, from::value, type::natural_or_none,
                                told::one_more, column::b};

  // Kind, log, value, duration, drawing, code, prefix, side-log prefix, fields.
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
    case event_kind::async_piece:
      return {kind, worker, both, timed, drawn::span, by_name, "", "piece,", {number}};
    case event_kind::counter:
      return {kind, beside, name, no_time, drawn::counter, by_name, "", "counter,", {value}};
    case event_kind::batch_takes:
      return {kind, beside, alone, no_time, drawn::nothing, 10, "", "takes,,", {taker, item}};
    case event_kind::off_cpu:
      return {kind, beside, alone, no_time, drawn::gap, 11, "", "off_cpu,,", {off, queued}};
    case event_kind::loader:  // selects the folder of the lines that follow
      return {kind, beside, record_value::none, no_time, drawn::nothing, 12, "", "", {}};
    case event_kind::stage_number:
      return {kind, beside, name, no_time, drawn::ahead, by_name, "", "number,", {whole}};
    case event_kind::arguments:
      return {kind, beside, name, no_time, drawn::ahead, by_name, "", "args,", {}};
    case event_kind::range:
      return {kind, beside, both, timed, drawn::span, by_name, "", "range,", {maybe}};
    case event_kind::allocated:
      return {kind, beside, both, no_time, drawn::ahead, by_name, "", "allocated,", {count, bytes}};
    case event_kind::freed:
      return {kind, beside, both, no_time, drawn::ahead, by_name, "", "freed,", {count, bytes}};
    case event_kind::retained:
      return {kind, beside, both, no_time, drawn::ahead, by_name, "", "retained,", {count, bytes}};
    case event_kind::heap_peak:
      return {kind, beside, both, no_time, drawn::ahead, by_name, "", "peak,", {count, bytes}};
    case event_kind::heap:
      return {kind, beside, both, no_time, drawn::counter, by_name, "", "heap,", {count, bytes}};
    case event_kind::held:
      return {kind, beside, both, no_time, drawn::nothing, by_name, "", "held,", {count, bytes}};
    case event_kind::heap_total:
      return {kind, beside, both, no_time, drawn::nothing, by_name, "", "total,", {count, bytes}};
    case event_kind::aggregated:
      return {kind, beside, both, timed, drawn::gap, by_name, "", "aggregated,", {maybe}};
    case event_kind::none:
      break;
  }
  // A record from a damaged ring file, or from a later version of lotus.
  constexpr record_value lost = record_value::none;
  return {event_kind::none, worker, lost, timed, drawn::span, by_name, "Skind_lost,", "", {}};
}
#pragma GCC diagnostic pop

/// The largest number of a kind plus one.
inline constexpr std::size_t record_kind_count = [] {
  std::size_t count = 256;
  while (row_of(static_cast<event_kind>(count - 1)).kind == event_kind::none) --count;
  return count;
}();

/// The rows, indexed by kind.
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

/// The row of a kind; row 0 if the number is not that of a kind.
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

/// Whether its lines have the three columns of a batch: prefix and number, begin, duration.
constexpr bool is_of_batch(const record_kind& kind) noexcept {
  return kind.value == record_value::number && !kind.prefix.empty();
}

/// The id of the record's name; call it only for kinds that have one.
constexpr std::uint32_t name_of(const record_kind& kind, record_tag tag) noexcept {
  const bool both = kind.value == record_value::name_and_number;
  return static_cast<std::uint32_t>(both ? tag.value() >> 32 : tag.value());
}

/// Avoids a branch, which would often be mispredicted.
LOTUS_DETAIL_ALWAYS_INLINE constexpr std::uint64_t number_of(const record_field& field,
                                                             const record& r) noexcept {
  const std::uint64_t word =
      field.source == field_source::second_word ? r.end_ticks : r.tag.value();
  return field.source == field_source::number_beside_name ? word & UINT32_MAX : word;
}

/// The largest number that a record can store in this field.
constexpr std::uint64_t most_of(const record_field& field) noexcept {
  switch (field.source) {
    case field_source::number_beside_name:
      return UINT32_MAX;
    case field_source::value:
      return (std::uint64_t{1} << record_tag::value_bits) - 1;
    case field_source::second_word:
      break;
  }
  return UINT64_MAX;
}

/// The value that a record stores if it has no number.
constexpr std::uint64_t missing_number(const record_field& field) noexcept {
  return most_of(field);
}
static_assert(large_stage_number == UINT32_MAX &&
                  run_queue_unknown == (std::uint64_t{1} << record_tag::value_bits) - 1,
              "they are what missing_number() says");

/// Compile-time checks of the table. Without them a wrong row would only show up as a damaged log.
namespace row_checks {

/// Whether `sound` is true for every row.
template <class Sound>
constexpr bool all(Sound&& sound) {
  for (const record_kind& row : record_kinds) {
    if (row.kind != event_kind::none && !sound(row)) return false;
  }
  return true;
}

static_assert(all([](const record_kind& row) {
                return is_of_batch(row)
                           ? row.role != log_role::side && row.prefix.size() > 7 &&
                                 row.prefix.substr(0, 6) == "SBatch" && row.prefix.back() == '_' &&
                                 row.beside.empty() && row.duration != written_duration::none
                           : row.prefix.empty();
              }),
              "lines of batches begin with SBatch..._, in the main or the worker log; all other "
              "lines begin with a name");
static_assert(all([](const record_kind& row) {
                return row.role != log_role::side || !row.beside.empty() ||
                       row.kind == event_kind::loader;
              }),
              "a kind whose lines stand beside says how these begin");
static_assert(all([](const record_kind& row) {
                const std::size_t name_bytes = row.beside_name().size();
                return row.beside.empty() ||
                       (row.beside.size() <= 16 &&
                        row.beside.substr(name_bytes) == (has_name(row) ? "," : ",,"));
              }),
              "a line beside begins with at most 16 bytes: its kind, a comma and, where it has no "
              "name, one more");
static_assert(all([](const record_kind& row) {
                for (const record_kind& other : record_kinds) {
                  if (!row.beside.empty() && row.kind != other.kind &&
                      row.beside_name() == other.beside_name()) {
                    return false;
                  }
                }
                return true;
              }),
              "lines beside of two kinds begin differently");
static_assert(all([](const record_kind& row) {
                for (const record_field& f : row.fields) {
                  if (f.quantity == record_quantity::none) continue;
                  const bool by_name = row.value == record_value::name_and_number;
                  const bool alone = row.value == record_value::number;
                  if (f.source == field_source::number_beside_name && !by_name) return false;
                  if (f.source == field_source::value && !alone) return false;
                  if (f.source == field_source::second_word &&
                      row.duration != written_duration::none) {
                    return false;
                  }
                  if ((f.column == line_column::prefix) != is_of_batch(row)) return false;
                  if (f.column == line_column::a && row.lasts()) return false;
                  if (row.field_in(f.column) != &f) return false;
                }
                return !is_of_batch(row) || row.field_in(line_column::prefix) != nullptr;
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
