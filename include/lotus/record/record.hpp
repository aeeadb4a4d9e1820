// Defines the 24-byte record of one finished span or event, and the kinds of records.
#ifndef LOTUS_RECORD_RECORD_HPP
#define LOTUS_RECORD_RECORD_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The kind of a record. The comment of each kind describes the value in the record's tag. In some
/// kinds, end_ticks holds a number instead of a time; then the comment describes it too. The
/// enumerators' numbers are stored in ring files: append new kinds and never renumber.
enum class event_kind : std::uint8_t {
  none = 0,
  operation = 1,  ///< a scope ended; tag: id of the operation's name
  /// A worker built a batch. The tag of this kind and the next four contains the number of the
  /// batch.
  batch_preprocessed = 2,
  batch_wait = 3,
  batch_arrived = 4,  ///< a batch arrived while the consumer waited for another one
  batch_consumed = 5,
  batch_queued = 6,
  /// A stage's work on a batch, item or request; tag: id of the stage's name, and number of the
  /// batch, item or request.
  stage = 7,
  /// A segment of an asynchronous operation (see async_scope); tag: id of the operation's name, and
  /// number of the operation.
  async_segment = 8,
  counter = 9,  ///< a counter changed; tag: id of its name; end_ticks: its new value
  /// An item became part of a batch; tag: number of the batch; end_ticks: number of the item.
  batch_takes = 10,
  off_cpu = 11,  ///< time off the CPU; tag: ns waiting for a CPU; end_ticks: all ns off the CPU
  /// The thread's records after this one belong to another loader; tag: id of its name, 0: the
  /// default loader.
  loader = 12,
  /// The number for the next stage record with the same name and start, if it is too large for that
  /// record's tag; tag: id of the stage's name; end_ticks: the number.
  stage_number = 13,
  /// A scope's arguments; tag: id of the text. The scope's record has the same start.
  arguments = 14,
  /// A lotus::range; tag: id of its name without the number at the end, and that number, which is
  /// number_not_in_tag if the name does not end in a number.
  range = 15,

  // Records about allocations, if the program's allocations are counted. Tag: id of a name, and a
  // 32-bit number (2^32 - 1 if the real number is larger); end_ticks: a number of bytes. The first
  // four kinds describe one operation: they precede the operation's record and have the same start
  // and name. A record is omitted if both its number and its bytes are 0.
  allocated = 16,  ///< bytes that the operation allocated; in the tag: number of allocations
  freed = 17,      ///< bytes that the operation freed; in the tag: number of calls
  retained = 18,   ///< bytes that the operation allocated and did not free; in the tag: blocks
  heap_peak = 19,  ///< maximum growth of the thread's heap during the operation, in bytes
  // The next three kinds describe the process's heap at one moment, begin_ticks.
  /// Bytes in use; in the tag: number of units (see heap_hook::enter()) that have begun so far, and
  /// the id of the name of a unit.
  heap = 20,
  /// Bytes in use that operations of this name allocated during one generation (a group of
  /// consecutive units); in the tag: number of the first unit of the generation.
  held = 21,
  /// Total of the process's allocations so far: in bytes if the number in the tag is 0, their
  /// number if it is 1.
  heap_total = 22,

  /// The total self time of the aggregated calls since a span last began or ended on this thread,
  /// stored as a span of this length; tag: id of the name of one of the calls, and
  /// number_not_in_tag.
  aggregated = 23,
};

/// Number of bits of a name's id, so that an id and a 32-bit number fit into one value.
inline constexpr unsigned name_id_bits = 24;
/// The id that all further names share when the table of names has no memory or no ids left.
inline constexpr std::uint32_t unnamed_id = (std::uint32_t{1} << name_id_bits) - 1;
/// The number in the tag of a stage record if the real number does not fit into 32 bits. A
/// stage_number record with the real number then precedes the stage record. Also the number in the
/// tag of a range whose name does not end in a number.
inline constexpr std::uint32_t number_not_in_tag = 0xFFFF'FFFF;
/// The number in the tag of an off_cpu record if it is unknown how long the thread waited for a
/// CPU.
inline constexpr std::uint64_t run_queue_unknown = (std::uint64_t{1} << 56) - 1;

/// A record's kind and value in one 64-bit word. The value is a name's id, a number, or both.
class record_tag {
 public:
  static constexpr unsigned value_bits = 56;

  constexpr record_tag() noexcept = default;
  constexpr record_tag(event_kind kind, std::uint64_t value) noexcept
      : word_{(static_cast<std::uint64_t>(kind) << value_bits) |
              (value & ((std::uint64_t{1} << value_bits) - 1))} {}
  constexpr record_tag(event_kind kind, std::uint32_t name, std::uint32_t number) noexcept
      : record_tag{kind, (std::uint64_t{name} << 32) | number} {}

  constexpr event_kind kind() const noexcept {
    return static_cast<event_kind>(word_ >> value_bits);
  }
  constexpr std::uint64_t value() const noexcept {
    return word_ & ((std::uint64_t{1} << value_bits) - 1);
  }
  constexpr bool empty() const noexcept { return word_ == 0; }

 private:
  std::uint64_t word_ = 0;
};

/// The number in the tag of a span that began before its batch's number was known.
inline constexpr std::uint64_t unknown_batch = (std::uint64_t{1} << record_tag::value_bits) - 1;

/// One finished span or event. A span is stored once, when it ends.
struct record {
  std::uint64_t begin_ticks;
  /// End of a span, in ticks; for an event: begin_ticks again, or a number.
  std::uint64_t end_ticks;
  record_tag tag;
};
static_assert(sizeof(record) == 24 && std::is_trivially_copyable_v<record>,
              "records are copied into shared memory as they are");

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_RECORD_HPP
