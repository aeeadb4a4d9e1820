// Kinds of records, and the 24-byte record of one finished span or event.
#ifndef LOTUS_RECORD_RECORD_HPP
#define LOTUS_RECORD_RECORD_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The kind of a record. The numbers are stored in ring files: append new ones, never renumber.
enum class event_kind : std::uint8_t {
  none = 0,
  operation = 1,           ///< value: id of the name
  batch_preprocessed = 2,  ///< value here and in the batch kinds below: the batch number
  batch_wait = 3,
  batch_arrived = 4,  ///< arrived out of order
  batch_consumed = 5,
  batch_queued = 6,
  stage = 7,          ///< value: id of the name, and the number of the batch, item or request
  async_piece = 8,    ///< value: id of the name, and the number of the asynchronous operation
  counter = 9,        ///< value: id of the name; the second word is the counter's new value
  batch_takes = 10,   ///< the second word is the item's number
  off_cpu = 11,       ///< value: ns waited for a CPU; second word: all ns off the CPU
  loader = 12,        ///< value: id of the loader's name for the following records; 0: the default
  stage_number = 13,  ///< value: id of the name; second word: the number of the stage record that
                      ///< follows, which has the same name and begin, and large_stage_number
  arguments = 14,     ///< value: id of the text of the arguments of the operation that begins then
  range = 15,         ///< value: id of the name, and the number at its end or large_stage_number

  // Only for a program whose allocations are counted. Value: id of a name, and a 32-bit number (the
  // maximum if it is larger); the second word is a number of bytes. The first four kinds belong to
  // an operation: they precede its record and have its begin and name; they are left out if both
  // the number and the bytes are 0.
  allocated = 16,  ///< number: of calls
  freed = 17,      ///< number: of calls
  retained = 18,   ///< what was allocated and not freed; number: of blocks
  heap_peak = 19,  ///< maximum growth of the thread's heap
  // The next kinds belong to the process; they have only the ticks of a moment.
  heap = 20,  ///< bytes held; value: name of a unit, and how many units had begun
  held = 21,  ///< bytes held that the operation of this name allocated; number: of the generation's
              ///< first unit
  heap_total = 22,  ///< number 0: bytes allocated so far; number 1: the second word is how many
                    ///< calls

  aggregated = 23,  ///< value: id of a name, and large_stage_number; lasts as long as the self
                    ///< times of the calls aggregated since the previous begin or end of a span
};

/// Ids of names are below 2^24, so that an id and a 32-bit number fit into one value.
inline constexpr unsigned name_id_bits = 24;
/// Stands for all names for which there was no memory, or that exceed the table's limit.
inline constexpr std::uint32_t unnamed_id = (std::uint32_t{1} << name_id_bits) - 1;
/// The number in a stage record if the real one does not fit into 32 bits: a record of kind
/// stage_number precedes it. Also the number of a range whose name ends in no number.
inline constexpr std::uint32_t large_stage_number = 0xFFFF'FFFF;
/// The value of an off_cpu record if the kernel does not report this time.
inline constexpr std::uint64_t run_queue_unknown = (std::uint64_t{1} << 56) - 1;

/// A record's kind and value (a name's id, a number or both) in one word.
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

/// One finished span, or an event. Written once, when it ends.
struct record {
  std::uint64_t begin_ticks;
  std::uint64_t end_ticks;  ///< of an event: equal to begin_ticks, or its second word
  record_tag tag;
};
static_assert(sizeof(record) == 24 && std::is_trivially_copyable_v<record>,
              "records are copied into shared memory as they are");

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_RECORD_HPP
