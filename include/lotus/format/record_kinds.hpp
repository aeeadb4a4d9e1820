// The one table of what a record of each kind is: its log, its lines, its numbers, how compact
// blocks tell it, and how it is drawn. Both writers and both readers go by it.
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

/// What a record's value says.
enum class record_value : std::uint8_t {
  name,             ///< the id of a name: the line begins with that
  name_and_number,  ///< likewise, and a number of 32 bits
  number,           ///< a number of 56 bits
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

/// What a record looks like on a timeline.
enum class record_drawing : std::uint8_t {
  nothing,  ///< it is counted, or a relation between others
  span,     ///< from its begin to its end
  step,     ///< from its begin to what its thread waits for next
  moment,
  counter,  ///< a value over time
  ahead,    ///< it tells of the operation that begins at its time, whose own record follows
  gap,      ///< time that is missing in the spans that lie before its time
};

/// What a number in a record is, with its unit.
enum class record_quantity : std::uint8_t {
  none,    ///< there is no such number
  batch,   ///< number of a batch
  item,    ///< number of an item
  number,  ///< of the batch, item or request; of the asynchronous operation; at the end of a name
  value,   ///< what the program counts, in its unit
  off_cpu_ns,
  run_queue_ns,  ///< of those, waited for a CPU
  bytes,         ///< of the heap; of heap_total with count 1, calls
  count,         ///< calls, blocks or units; of heap_total, what its bytes are
};

/// Where in the record it is.
enum class field_source : std::uint8_t { number_beside_name, value, second_word };

/// Which numbers there are, as the text of a line has them.
enum class field_type : std::uint8_t {
  natural,          ///< 0 to INT64_MAX
  natural_or_none,  ///< likewise, or nothing: the record has missing_number() then
  integer,          ///< with a sign
  bits,             ///< 64 of them, without a sign
};

/// How a compact block tells it.
enum class field_coding : std::uint8_t {
  difference,  ///< to the one before of the same code, zigzag; of a second field, to that of any
  plain,
  one_more,  ///< 0: there is none
};

/// Where a line has it: behind its prefix, or in one of the last two columns of a line beside.
enum class line_column : std::uint8_t { prefix, a, b };

/// A number of a record. Zeros are none.
struct record_field {
  record_quantity quantity;
  field_source source;
  field_type type;
  field_coding coding;
  line_column column;
};

/// A column A or B that no field has is 0; but A of what is measured is the duration.
struct record_kind {
  event_kind kind;
  log_role role;  ///< of the log that its lines go to
  record_value value;
  written_duration duration;
  record_drawing drawing;
  /// In compact blocks, of a kind without a name, whatever its number as event_kind is; 0: names
  /// get codes, as they come.
  std::uint8_t code;
  std::string_view prefix;  ///< how its lines begin; empty where they begin with a name
  /// How its line in the log beside begins; empty where it has none there.
  std::string_view beside;
  record_field fields[2];  ///< in the order in which compact blocks tell them
  /// Those in the columns A and B, or none; filled in by the table.
  record_field columns[2] = {};

  /// What a span of this kind is called on a profiler's timeline; empty where that is its name.
  constexpr std::string_view task() const noexcept {
    return prefix.size() < 2 ? prefix : prefix.substr(1, prefix.size() - 2);
  }
  /// The first column of its lines beside.
  constexpr std::string_view beside_name() const noexcept {
    return beside.substr(0, beside.find(','));
  }
  /// Whether its end was measured.
  constexpr bool lasts() const noexcept {
    return duration == written_duration::measured ||
           duration == written_duration::measured_unlike_placeholder;
  }
  /// The field that a line has in this column; null where it has none.
  constexpr const record_field* field_in(line_column column) const noexcept {
    for (const record_field& f : fields) {
      if (f.quantity != record_quantity::none && f.column == column) return &f;
    }
    return nullptr;
  }
};

/// The table: a row for each kind. One that has none here is an error, whatever the build's
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
  constexpr log_role beside = log_role::beside;
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
  // Beside a name.
  constexpr record_field number{what::number, from::number_beside_name, type::natural,
                                told::difference, column::b};
  constexpr record_field maybe{what::number, from::number_beside_name, type::natural_or_none,
                               told::difference, column::b};
  constexpr record_field count{what::count, from::number_beside_name, type::natural,
                               told::difference, column::b};
  // In the second word.
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

  // Kind, log, value, duration, drawing, code, prefix, prefix beside, fields.
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
    case event_kind::loader:  // tells where lines go, and has none
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
  // A record of a damaged ring file, or of a later version.
  constexpr record_value lost = record_value::none;
  return {event_kind::none, worker, lost, timed, drawn::span, by_name, "Skind_lost,", "", {}};
}
#pragma GCC diagnostic pop

/// One more than the largest number of a kind.
inline constexpr std::size_t record_kind_count = [] {
  std::size_t count = 256;
  while (row_of(static_cast<event_kind>(count - 1)).kind == event_kind::none) --count;
  return count;
}();

/// The rows by number.
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

/// The row of a kind, or of a number that is none.
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

/// Whether its lines are the three columns of a batch: prefix and number, begin, duration.
constexpr bool is_of_batch(const record_kind& kind) noexcept {
  return kind.value == record_value::number && !kind.prefix.empty();
}

/// The id of the name of a record that has one.
constexpr std::uint32_t name_of(const record_kind& kind, record_tag tag) noexcept {
  const bool both = kind.value == record_value::name_and_number;
  return static_cast<std::uint32_t>(both ? tag.value() >> 32 : tag.value());
}

/// Without a branch, for one would often be foreseen wrongly.
LOTUS_DETAIL_ALWAYS_INLINE constexpr std::uint64_t number_of(const record_field& field,
                                                             const record& r) noexcept {
  const std::uint64_t word =
      field.source == field_source::second_word ? r.end_ticks : r.tag.value();
  return field.source == field_source::number_beside_name ? word & UINT32_MAX : word;
}

/// The largest number that a record can have there.
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

/// What a record has where there is no number.
constexpr std::uint64_t missing_number(const record_field& field) noexcept {
  return most_of(field);
}
static_assert(large_stage_number == UINT32_MAX &&
                  run_queue_unknown == (std::uint64_t{1} << record_tag::value_bits) - 1,
              "they are what missing_number() says");

/// What a row of the table must not be. Nothing else finds these before a log is damaged.
namespace row_checks {

/// Whether `sound` is true of each kind's row.
template <class Sound>
constexpr bool all(Sound&& sound) {
  for (const record_kind& row : record_kinds) {
    if (row.kind != event_kind::none && !sound(row)) return false;
  }
  return true;
}

static_assert(all([](const record_kind& row) {
                return is_of_batch(row)
                           ? row.role != log_role::beside && row.prefix.size() > 7 &&
                                 row.prefix.substr(0, 6) == "SBatch" && row.prefix.back() == '_' &&
                                 row.beside.empty() && row.duration != written_duration::none
                           : row.prefix.empty();
              }),
              "lines of batches begin with SBatch..._, in the main or the worker log; all other "
              "lines begin with a name");
static_assert(all([](const record_kind& row) {
                return row.role != log_role::beside || !row.beside.empty() ||
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
