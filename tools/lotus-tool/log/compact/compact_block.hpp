// Compact logs: decodes blocks into records.
#ifndef LOTUS_TOOL_LOG_COMPACT_COMPACT_BLOCK_HPP
#define LOTUS_TOOL_LOG_COMPACT_COMPACT_BLOCK_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lotus/format/compact_layout.hpp"
#include "lotus/format/line.hpp"
#include "lotus/format/record_kinds.hpp"
#include "lotus/format/varint.hpp"

namespace lotus::tool {

/// A record with the contents of its lines.
struct compact_record {
  lotus::detail::event_kind kind = lotus::detail::event_kind::none;
  std::string_view name;  ///< escaped, with its S; empty if the kind has no name
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  /// The fields of its kind's row in the table, in that order.
  std::uint64_t numbers[2] = {};
};

/// Returns the size of the block at the beginning of `bytes` and fills `header`; 0 if there is no
/// block with a correct checksum; nullopt if more bytes are needed to decide.
std::optional<std::size_t> find_block(std::string_view bytes,
                                      lotus::detail::compact_block_header& header) noexcept;

/// Decodes the blocks of one log, one after the other. Not thread-safe.
class compact_decoder {
 public:
  /// Call it if blocks are missing: names are unknown until a block begins anew.
  void lost_blocks() noexcept { knows_ = false; }

  /// Begins a block that find_block() has found. Returns false if its names are not known.
  bool begin(const lotus::detail::compact_block_header& header, std::string_view block) noexcept;

  /// Reads the block's next record. Returns false at the end, or if error() says that the rest is
  /// damaged.
  bool next(compact_record& record) {
    if (left_ == 0) return false;
    const std::string* const name = near_operation();
    if (name == nullptr) return next_of_any(record);
    std::uint64_t duration = 0;
    if (!take_operation(duration)) return false;
    record.kind = lotus::detail::event_kind::operation;
    record.name = *name;
    record.start_ns = static_cast<std::int64_t>(time_ns_ - duration);
    record.duration_ns = static_cast<std::int64_t>(duration);
    return true;
  }

  /// Like next(), but skips most operations.
  bool next_beside(compact_record& record) {
    std::uint64_t duration = 0;
    while (left_ != 0 && near_operation() != nullptr) {
      if (!take_operation(duration)) return false;
    }
    return left_ != 0 && next_of_any(record);
  }

  const char* error() const noexcept { return error_; }

 private:
  struct named {
    lotus::detail::event_kind kind;
    std::string name;
    std::uint64_t last;
  };

  /// The name of the next record if it is an operation with a known name and not near the block's
  /// end, as nearly every record is; else null.
  const std::string* near_operation() const noexcept {
    constexpr std::ptrdiff_t most_bytes = 32;
    if (end_ - at_ < most_bytes) return nullptr;
    const std::size_t name = static_cast<std::size_t>(*at_) - lotus::detail::first_named_code;
    return name < operations_.size() ? operations_[name] : nullptr;
  }

  bool take_operation(std::uint64_t& duration) noexcept {
    std::uint64_t told = 0;
    std::uint64_t earlier = 0;
    const char* at = lotus::detail::take_varint(at_ + 1, told);
    if (told == lotus::detail::earlier_time) at = lotus::detail::take_varint(at, earlier);
    at_ = lotus::detail::take_varint(at, duration);
    --left_;
    return go_on(told, earlier, duration);
  }

  /// Advances the time to the end of the next record. @param earlier  used if `told` is
  /// earlier_time.
  bool go_on(std::uint64_t told, std::uint64_t earlier, std::uint64_t duration) noexcept {
    time_ns_ += told == lotus::detail::earlier_time
                    ? 0 - earlier
                    : lotus::detail::end_of_told_time(told, duration);
    return (time_ns_ <= INT64_MAX && duration <= time_ns_) || fail("a time that cannot be");
  }

  bool next_of_any(compact_record& record);
  bool take(std::uint64_t& value) noexcept;
  bool take_difference(std::uint64_t& last) noexcept;
  bool announce();
  bool read_record(std::uint64_t code, compact_record& record) noexcept;
  bool read_fields(compact_record& record, std::uint64_t& last) noexcept;
  bool fail(const char* why) noexcept;

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::uint32_t left_ = 0;  // records
  std::uint64_t time_ns_ = 0;
  const char* error_ = nullptr;
  bool knows_ = false;
  std::deque<named> names_;                     // by code
  std::vector<const std::string*> operations_;  // by code, of one byte; null: not an operation
  std::array<std::uint64_t, lotus::detail::first_named_code> last_of_{};
  std::uint64_t last_second_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_COMPACT_COMPACT_BLOCK_HPP
