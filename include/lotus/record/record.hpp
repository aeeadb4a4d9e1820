// What one finished span or event is: the kinds and the 24-byte record.
#ifndef LOTUS_RECORD_RECORD_HPP
#define LOTUS_RECORD_RECORD_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// What a record tells. The numbers stand in ring files: append, never renumber.
enum class event_kind : std::uint8_t {
  none = 0,
  operation = 1,           ///< value: id of the name
  batch_preprocessed = 2,  ///< value of this and of all that follow: batch number
  batch_wait = 3,
  batch_arrived = 4,  ///< out of order
  batch_consumed = 5,
  batch_queued = 6,
  stage = 7,         ///< value: id of the name, and the number of the batch, item or request
  async_piece = 8,   ///< value: id of the name, and the number of the asynchronous operation
  counter = 9,       ///< value: id of the name; the second word is the number counted
  batch_takes = 10,  ///< the second word is the item's number
  off_cpu = 11,      ///< value: ns waited for a CPU; the second word: ns off the CPU in all
  loader = 12,  ///< value: id of the name of the loader of the records that follow, 0: the default
  stage_number = 13,  ///< value: id of the name; the second word is the number of the stage of that
                      ///< name and begin that follows, and has large_stage_number
  arguments = 14,     ///< value: id of what the operation that begins then was given, as a name
  range = 15,         ///< value: id of the name, and the number at its end or large_stage_number

  // Of a program whose allocations are counted. Value: id of a name, and a number of 32 bits, the
  // largest where it is more; the second word is a number of bytes. First four of an operation,
  // before the record of that, with its begin and its name; left out where both numbers are 0.
  allocated = 16,  ///< and in how many calls
  freed = 17,      ///< likewise
  retained = 18,   ///< of what was allocated, and in how many blocks
  heap_peak = 19,  ///< by which the thread's heap had grown at most
  // Then of the process, at its begin ticks.
  heap = 20,  ///< what is held; how many units had begun, and what these are called
  held = 21,  ///< likewise of what was allocated in the operation of this name, from that unit on
  heap_total = 22,  ///< number 0: allocated so far; 1: the second word is in how many calls

  aggregated = 23,  ///< value: id of a name, and large_stage_number; as long as the calls' own time
                    ///< that were aggregated since the begin or end of a span before
};

/// Ids of names are below 2^24: one and a number of 32 bits make a value.
inline constexpr unsigned name_id_bits = 24;
/// Stands for every name that got no memory, and for those beyond the table's limit.
inline constexpr std::uint32_t unnamed_id = (std::uint32_t{1} << name_id_bits) - 1;
/// What a stage has for a number that 32 bits do not hold: a record of kind stage_number precedes.
/// What a range has whose name ends in no number.
inline constexpr std::uint32_t large_stage_number = 0xFFFF'FFFF;
/// What off_cpu has for a value where the kernel does not tell.
inline constexpr std::uint64_t run_queue_unknown = (std::uint64_t{1} << 56) - 1;

/// Kind and value (a name's id, a number or both) in one word.
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

/// One finished span, or an event. Written once, when the span ends.
struct record {
  std::uint64_t begin_ticks;
  std::uint64_t end_ticks;  ///< of an event: as begin_ticks, or its second word
  record_tag tag;
};
static_assert(sizeof(record) == 24 && std::is_trivially_copyable_v<record>,
              "records are copied into shared memory as they are");

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_RECORD_HPP
