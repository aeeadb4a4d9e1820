// Defines the tag in each heap block. It stores which thread and operation allocated the block, and
// the size that the program requested.
#ifndef LOTUS_MEMORY_BLOCK_TAG_HPP
#define LOTUS_MEMORY_BLOCK_TAG_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lotus::memory {

/// The last 16 bytes of a heap block. Each block is allocated 16 bytes larger than the program
/// requested. The tag is at the end of the block, so that the program gets the same pointer as from
/// the real heap, with any alignment. This allows code that calls the real heap directly to free
/// blocks with a tag, and this library to free blocks without a tag.
struct block_tag {
  /// The lower 48 bits are the size that the program requested. The upper 16 bits are a checksum,
  /// which shows whether these bytes are a tag.
  std::uint64_t size_and_check;
  /// Slot (upper 16 bits, see class generations), number of the thread (16 bits) and number of the
  /// operation (32 bits) that allocated the block.
  std::uint64_t owner;

  static constexpr unsigned size_bits = 48;
  static constexpr std::size_t max_bytes = (std::size_t{1} << size_bits) - 1;

  std::size_t size() const noexcept { return size_and_check & max_bytes; }
  std::uint32_t slot() const noexcept { return static_cast<std::uint32_t>(owner >> 48U); }
  std::uint32_t thread() const noexcept {
    return static_cast<std::uint32_t>(owner >> 32U) & 0xFFFFU;
  }
  std::uint32_t operation() const noexcept { return static_cast<std::uint32_t>(owner); }
};
inline constexpr std::size_t tag_bytes = sizeof(block_tag);
static_assert(tag_bytes == 16, "what a block may cost");

constexpr std::uint64_t owner_word(std::uint32_t slot, std::uint32_t thread,
                                   std::uint32_t operation) noexcept {
  return (std::uint64_t{slot} << 48U) | (std::uint64_t{thread} << 32U) | operation;
}

/// Returns the checksum of a tag. If a block has no tag, the program's data looks like a correct
/// checksum in only one of 65,536 cases.
inline std::uint64_t tag_check(const void* block, std::size_t size, std::uint64_t owner) noexcept {
  const std::uint64_t mixed =
      (reinterpret_cast<std::uintptr_t>(block) ^ owner ^ (std::uint64_t{size} << 20U)) *
      0x9E3779B97F4A7C15U;
  return ((mixed >> 48U) | 1U) << block_tag::size_bits;
}

/// Stores a tag in a block.
/// @param usable  size of the block, at least `size` + tag_bytes.
inline void put_tag(void* block, std::size_t usable, std::size_t size,
                    std::uint64_t owner) noexcept {
  const block_tag tag{size | tag_check(block, size, owner), owner};
  std::memcpy(static_cast<char*>(block) + usable - tag_bytes, &tag, tag_bytes);
}

/// Reads a block's tag. Returns false if the block has no tag.
inline bool read_tag(const void* block, std::size_t usable, block_tag& tag) noexcept {
  if (usable < tag_bytes) return false;
  std::memcpy(&tag, static_cast<const char*>(block) + usable - tag_bytes, tag_bytes);
  const std::size_t size = tag.size();
  return size <= usable - tag_bytes &&
         (tag.size_and_check & ~block_tag::max_bytes) == tag_check(block, size, tag.owner);
}

/// Erases a block's tag before the block is freed. Otherwise, code that calls the real heap could
/// get the same block, in which the old tag would look valid.
inline void erase_tag(void* block, std::size_t usable) noexcept {
  std::memset(static_cast<char*>(block) + usable - tag_bytes, 0, sizeof(std::uint64_t));
}

}  // namespace lotus::memory

#endif  // LOTUS_MEMORY_BLOCK_TAG_HPP
