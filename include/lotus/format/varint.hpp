// Encodes 64-bit numbers in as few bytes as needed: LEB128 (DWARF 5, section 7.6).
#ifndef LOTUS_FORMAT_VARINT_HPP
#define LOTUS_FORMAT_VARINT_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Maps small numbers of either sign to small numbers: 0, -1, 1, -2 become 0, 1, 2, 3.
constexpr std::uint64_t to_zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63U);
}
constexpr std::int64_t from_zigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>((value >> 1U) ^ (0 - (value & 1U)));
}

/// Maximum number of bytes of an encoded number.
inline constexpr std::size_t varint_bytes = 10;

/// Writes seven bits of the number per byte, the lowest first; the highest bit is set in all bytes
/// but the last. Returns the end of the number. `out` must have space for varint_bytes bytes: even
/// a number of one byte overwrites two bytes.
LOTUS_DETAIL_ALWAYS_INLINE char* put_varint(char* out, std::uint64_t value) noexcept {
  // Numbers of one and of two bytes occur in random order, so a branch would often be mispredicted.
  if (LOTUS_DETAIL_LIKELY(value < 0x4000)) {
    const auto more = static_cast<unsigned>(value > 0x7F);
    const auto both =
        static_cast<std::uint16_t>((value & 0x7FU) | more << 7U | (value >> 7U) << 8U);
    std::memcpy(out, &both, sizeof(both));
    return out + 1 + more;
  }
  for (; value >= 0x80; value >>= 7U) *out++ = static_cast<char>(value | 0x80U);
  *out++ = static_cast<char>(value);
  return out;
}

/// Reads a number that put_varint() wrote, without checking where the input ends. Returns the
/// position after the number. Reads at most varint_bytes bytes, even if they contain no valid
/// number.
LOTUS_DETAIL_ALWAYS_INLINE const char* take_varint(const char* from,
                                                   std::uint64_t& value) noexcept {
  std::uint64_t byte = static_cast<unsigned char>(*from++);
  value = byte & 0x7FU;
  for (unsigned shift = 7; byte >= 0x80 && shift < 64; shift += 7) {
    byte = static_cast<unsigned char>(*from++);
    value |= (byte & 0x7FU) << shift;
  }
  return from;
}

/// Reads a number that put_varint() wrote from untrusted bytes that end at `end`. Returns the
/// position after the number; null if the number is not complete.
inline const char* take_varint(const char* from, const char* end, std::uint64_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 64 && from != end; shift += 7) {
    const auto byte = static_cast<unsigned char>(*from++);
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return from;
  }
  return nullptr;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_FORMAT_VARINT_HPP
