// The operations of a log in few bytes.
#ifndef LOTUS_TOOL_MODEL_PACKED_OPERATIONS_HPP
#define LOTUS_TOOL_MODEL_PACKED_OPERATIONS_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/calls/nesting_order.hpp"
#include "model/leb128.hpp"

namespace lotus::tool {

/// Operations in the order in which they came: about 8 bytes each, at most 25. Grows by blocks, for
/// a growing vector would for a moment take three times the memory. Not thread-safe.
class packed_operations {
 public:
  void push(const operation& op) {
    if (blocks_.empty() || block_bytes - blocks_.back().used < operation_bytes) add_block();
    block& last = blocks_.back();
    char* p = last.bytes.get() + last.used;
    // A start is told from the one before; a duration is never negative.
    p = put_leb128(p, zigzag(op.start_ns - last_start_ns_));
    p = put_leb128(p, static_cast<std::uint64_t>(op.duration_ns));
    p = put_leb128(p, op.name);
    last.used = static_cast<std::size_t>(p - last.bytes.get());
    last_start_ns_ = op.start_ns;
  }

  bool empty() const noexcept { return blocks_.empty(); }

  /// Hands every operation to `on_operation(const operation&)`, in order.
  template <class OnOperation>
  void for_each(OnOperation&& on_operation) const {
    operation op;
    for (const block& b : blocks_) {
      const char* p = b.bytes.get();
      const char* const end = p + b.used;
      while (p != end) {
        std::uint64_t start = 0;
        std::uint64_t duration = 0;
        std::uint64_t name = 0;
        p = take_leb128(take_leb128(take_leb128(p, start), duration), name);
        op.start_ns += unzigzag(start);
        op.duration_ns = static_cast<std::int64_t>(duration);
        op.name = static_cast<std::uint32_t>(name);
        on_operation(op);
      }
    }
  }

 private:
  static constexpr std::size_t block_bytes = std::size_t{32} << 10U;
  static constexpr std::size_t operation_bytes = 3 * leb128_bytes;

  struct block {
    std::unique_ptr<char[]> bytes;  // NOLINT(modernize-avoid-c-arrays)
    std::size_t used = 0;
  };

  /// Its bytes are not set to 0 first: what is not used is not touched.
  void add_block() { blocks_.push_back({std::unique_ptr<char[]>(new char[block_bytes]), 0}); }

  std::vector<block> blocks_;
  std::int64_t last_start_ns_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PACKED_OPERATIONS_HPP
