// What one finished span or event is: the kinds and the 24-byte record.
#ifndef LOTUS_RECORD_HPP
#define LOTUS_RECORD_HPP

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
};

/// Kind and value (a name's id or a batch number) in one word.
class record_tag {
 public:
  static constexpr unsigned value_bits = 56;

  constexpr record_tag() noexcept = default;
  constexpr record_tag(event_kind kind, std::uint64_t value) noexcept
      : word_{(static_cast<std::uint64_t>(kind) << value_bits) |
              (value & ((std::uint64_t{1} << value_bits) - 1))} {}

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

/// One finished span; an event has begin == end. Written once, when the span ends.
struct record {
  std::uint64_t begin_ticks;
  std::uint64_t end_ticks;
  record_tag tag;
};
static_assert(sizeof(record) == 24 && std::is_trivially_copyable_v<record>,
              "records are copied into shared memory as they are");

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_HPP
