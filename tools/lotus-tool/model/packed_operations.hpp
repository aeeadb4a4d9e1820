// Stores the operations of a log compactly.
#ifndef LOTUS_TOOL_MODEL_PACKED_OPERATIONS_HPP
#define LOTUS_TOOL_MODEL_PACKED_OPERATIONS_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "lotus/format/varint.hpp"
#include "model/calls/nesting_times.hpp"

namespace lotus::tool {

/// The operations of one log in the order in which they were added. Each operation takes about 8
/// bytes, at most 21: one byte with the sizes of the three numbers, and as many bytes of each
/// number as it needs. Unlike the variable-length integers of compact logs, these are read without
/// a branch for each byte, because a run's operations are read many times. They are stored in
/// blocks, because a vector would temporarily take three times the memory when it grows. Not
/// thread-safe.
class packed_operations {
 public:
  void push(const operation& op) {
    if (block_bytes - used_ < operation_bytes || open_ == nullptr) next_block();
    // A start is stored as the difference from the previous start. The difference may be negative,
    // so it needs zigzag encoding; a duration never is negative.
    const std::uint64_t start = lotus::detail::to_zigzag(op.start_ns - last_start_ns_);
    const auto duration = static_cast<std::uint64_t>(op.duration_ns);
    const unsigned start_bytes = bytes_needed(start);
    const unsigned duration_bytes = bytes_needed(duration);
    const unsigned name_bytes = bytes_needed(op.name);
    char* p = open_.get() + used_;
    *p++ = static_cast<char>((start_bytes - 1) | ((duration_bytes - 1) << 3U) |
                             ((name_bytes - 1) << 6U));
    // Each number is written with 8 bytes. The next number overwrites those that are not needed.
    std::memcpy(p, &start, sizeof start);
    p += start_bytes;
    std::memcpy(p, &duration, sizeof duration);
    p += duration_bytes;
    std::memcpy(p, &op.name, sizeof op.name);
    p += name_bytes;
    used_ = static_cast<std::size_t>(p - open_.get());
    last_start_ns_ = op.start_ns;
  }

  /// Stores the last block, which is usually not full. Call this after the last push().
  void finish() {
    if (used_ > 0) close_block();
    open_.reset();
  }

  bool empty() const noexcept { return blocks_.empty() && used_ == 0; }
  /// Returns about how many bytes the operations take.
  std::size_t bytes() const noexcept { return blocks_.size() * block_bytes + used_; }

  /// Returns the operations one by one, in the order in which they were added, so that several
  /// lists can be read at the same time. Slower than for_each().
  class reader {
   public:
    /// @param from  must outlive the reader, and must not change.
    explicit reader(const packed_operations& from) : from_(&from) {}

    /// Returns the next operation, valid until the next call; nullptr at the end.
    const operation* next() {
      while (at_ == end_) {
        if (block_ > from_->blocks_.size()) return nullptr;
        const bool is_open = block_ == from_->blocks_.size();
        at_ = (is_open ? from_->open_ : from_->blocks_[block_].bytes).get();
        end_ = at_ + (is_open ? from_->used_ : from_->blocks_[block_].used);
        ++block_;
      }
      at_ = unpack(at_, op_);
      return &op_;
    }

   private:
    const packed_operations* from_;
    std::size_t block_ = 0;  // index of the next block
    const char* at_ = nullptr;
    const char* end_ = nullptr;
    operation op_;
  };

  /// Calls `on_operation(const operation&)` for each operation, in the order in which they were
  /// added.
  template <class OnOperation>
  void for_each(OnOperation&& on_operation) const {
    operation op;
    for (const block& b : blocks_) unpack_all(b.bytes.get(), b.used, op, on_operation);
    unpack_all(open_.get(), used_, op, on_operation);
  }

 private:
  static constexpr std::size_t block_bytes = std::size_t{32} << 10U;
  /// Space for one operation. The last number is read with 8 bytes, of which some may follow the
  /// operation, so a block always ends with unused bytes.
  static constexpr std::size_t operation_bytes = 1 + 3 * sizeof(std::uint64_t);

  /// Returns how many bytes of a number are not 0 or are followed by such bytes; at least 1.
  static unsigned bytes_needed(std::uint64_t value) noexcept {
    return (71U - static_cast<unsigned>(__builtin_clzll(value | 1U))) / 8U;
  }
  /// Returns the number that the first `bytes` (1 to 8) bytes at `p` contain.
  static std::uint64_t number_at(const char* p, unsigned bytes) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, p, sizeof value);
    return value & (~std::uint64_t{0} >> (64U - 8U * bytes));
  }

  struct block {
    std::unique_ptr<char[]> bytes;  // NOLINT(modernize-avoid-c-arrays)
    std::size_t used = 0;
  };

  /// Reads the operation at `p` into `op`, which must contain the previous operation when this
  /// function is called: starts are stored as differences. Returns the position after the
  /// operation.
  static const char* unpack(const char* p, operation& op) {
    const auto sizes = static_cast<unsigned char>(*p++);
    const unsigned start_bytes = (sizes & 7U) + 1;
    const unsigned duration_bytes = ((sizes >> 3U) & 7U) + 1;
    const unsigned name_bytes = (sizes >> 6U) + 1;
    op.start_ns += lotus::detail::from_zigzag(number_at(p, start_bytes));
    p += start_bytes;
    op.duration_ns = static_cast<std::int64_t>(number_at(p, duration_bytes));
    p += duration_bytes;
    op.name = static_cast<std::uint32_t>(number_at(p, name_bytes));
    return p + name_bytes;
  }
  template <class OnOperation>
  static void unpack_all(const char* p, std::size_t bytes, operation& op,
                         OnOperation& on_operation) {
    for (const char* const end = p + bytes; p != end;) {
      p = unpack(p, op);
      on_operation(op);
    }
  }

  /// Begins a new block. Does not set its bytes to 0, so that the system allocates only those pages
  /// of memory to which operations are written.
  void next_block() {
    if (used_ > 0) close_block();
    open_.reset(new char[block_bytes]);
  }
  void close_block() {
    blocks_.push_back({std::move(open_), used_});
    used_ = 0;
  }

  std::vector<block> blocks_;
  std::unique_ptr<char[]> open_;  // NOLINT(modernize-avoid-c-arrays): the last block
  std::size_t used_ = 0;          // number of used bytes in `open_`
  std::int64_t last_start_ns_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PACKED_OPERATIONS_HPP
