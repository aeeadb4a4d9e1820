// Compact logs: from blocks to records.
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

/// A record, with what its lines would say.
struct compact_record {
  lotus::detail::event_kind kind = lotus::detail::event_kind::none;
  std::string_view name;  ///< escaped, with its S; empty where the kind has none
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  /// Of the fields of its kind's row, in that order.
  std::uint64_t numbers[2] = {};
};

/// The size of a block that lies at the beginning of `bytes`, its checksum right; its header is
/// filled. 0 where there is none; nullopt where more bytes are needed to know.
std::optional<std::size_t> find_block(std::string_view bytes,
                                      lotus::detail::compact_block_header& header) noexcept;

/// Reads the blocks of one log, one after the other. Not thread-safe.
class compact_decoder {
 public:
  /// Blocks are missing: names of what follows are not known until one begins anew.
  void lost_blocks() noexcept { knows_ = false; }

  /// Begins a block that find_block() has found. False where its names are not known.
  bool begin(const lotus::detail::compact_block_header& header, std::string_view block) noexcept;

  /// The next record of it. False at its end, or where error() tells that the rest makes no sense.
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

  /// next(), but most operations are passed over.
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

  /// The name of the next record, where that is an operation with a known one, far from the block's
  /// end: nearly every one is.
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

  /// To the end of a record of which this is told. @param earlier  where `told` is earlier_time.
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
  std::deque<named> names_;  // by code
  std::vector<const std::string*>
      operations_;  // likewise, those of one byte; null: of no operation
  std::array<std::uint64_t, lotus::detail::first_named_code> last_of_{};
  std::uint64_t last_second_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_COMPACT_COMPACT_BLOCK_HPP
