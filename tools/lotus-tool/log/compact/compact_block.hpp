// Decodes the blocks of a compact log (the binary form of a log) into records.
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

/// One decoded record, with everything that a line of a text log would contain.
struct compact_record {
  lotus::detail::event_kind kind = lotus::detail::event_kind::none;
  std::string_view name;  ///< escaped name with the logs' leading S; empty if the kind has no name
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  /// The record's numbers, in the order of the fields in the library's table of record kinds.
  std::uint64_t numbers[2] = {};
};

/// Returns the size of the block at the beginning of `bytes` and fills `header`. Returns 0 if there
/// is no block with a correct checksum, and nullopt if more bytes are needed to decide.
std::optional<std::size_t> find_block(std::string_view bytes,
                                      lotus::detail::compact_block_header& header) noexcept;

/// Decodes the blocks of one log, one after another. Not thread-safe.
class compact_decoder {
 public:
  /// The caller must call this before the next begin() if it skipped damaged blocks, because they
  /// may define names that later blocks use. The decoder then rejects every block until it gets one
  /// that does not use names from earlier blocks.
  void lost_blocks() noexcept { knows_ = false; }

  /// Begins to decode a block that find_block() has found. Returns false if the block cannot be
  /// read, or if it uses names that missing blocks define; error() then gives the reason.
  bool begin(const lotus::detail::compact_block_header& header, std::string_view block) noexcept;

  /// Reads the block's next record. Returns false at the end of the block, or if the rest of the
  /// block is damaged; then error() gives the reason.
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

  /// Like next(), but for readers of side logs, in which operations have no lines. Skips most
  /// records of operations; the caller must ignore the others.
  bool next_side_line(compact_record& record) {
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

  /// Returns the name of the next record if it is an operation, its name has a code of one byte,
  /// and at least 32 bytes of the block are left; otherwise null. Nearly all records fulfill these
  /// conditions, so next() has a fast path for them.
  const std::string* near_operation() const noexcept {
    constexpr std::ptrdiff_t max_bytes = 32;
    if (end_ - at_ < max_bytes) return nullptr;
    const std::size_t name = static_cast<std::size_t>(*at_) - lotus::detail::first_named_code;
    return name < operations_.size() ? operations_[name] : nullptr;
  }

  bool take_operation(std::uint64_t& duration) noexcept {
    std::uint64_t coded = 0;
    std::uint64_t earlier = 0;
    const char* at = lotus::detail::take_varint(at_ + 1, coded);
    if (coded == lotus::detail::earlier_time) at = lotus::detail::take_varint(at, earlier);
    at_ = lotus::detail::take_varint(at, duration);
    --left_;
    return go_on(coded, earlier, duration);
  }

  /// Sets time_ns_ to the end of the record that is being decoded. Reports an error if this time or
  /// the record's start cannot be a valid time.
  /// @param coded  the code of the record's end time in the block.
  /// @param earlier  how much earlier than the previous record this record ends; only used if
  /// `coded` is earlier_time.
  bool go_on(std::uint64_t coded, std::uint64_t earlier, std::uint64_t duration) noexcept {
    time_ns_ += coded == lotus::detail::earlier_time
                    ? 0 - earlier
                    : lotus::detail::end_of_coded_time(coded, duration);
    return (time_ns_ <= INT64_MAX && duration <= time_ns_) || fail("an impossible time");
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
  std::uint32_t left_ = 0;  // number of records that next() has not returned yet
  std::uint64_t time_ns_ = 0;
  const char* error_ = nullptr;
  bool knows_ = false;
  // All names that the blocks decoded so far have defined, in the order of their codes.
  std::deque<named> names_;
  // For each name with a one-byte code, in the order of the codes: the name if it belongs to an
  // operation, otherwise null.
  std::vector<const std::string*> operations_;
  std::array<std::uint64_t, lotus::detail::first_named_code> last_of_{};
  std::uint64_t last_second_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_COMPACT_COMPACT_BLOCK_HPP
