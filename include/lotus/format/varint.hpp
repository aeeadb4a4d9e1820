// Numbers of 64 bits in as few bytes as they need: LEB128 (DWARF 5, section 7.6).
#ifndef LOTUS_FORMAT_VARINT_HPP
#define LOTUS_FORMAT_VARINT_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Small numbers of either sign as small numbers: 0, -1, 1, -2 become 0, 1, 2, 3.
constexpr std::uint64_t to_zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63U);
}
constexpr std::int64_t from_zigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>((value >> 1U) ^ (0 - (value & 1U)));
}

/// Bytes that a number takes at most.
inline constexpr std::size_t varint_bytes = 10;

/// Seven bits a byte, the lowest first, the highest bit set in all but the last. Returns the end;
/// touches at most varint_bytes, and always 2.
LOTUS_DETAIL_ALWAYS_INLINE char* put_varint(char* out, std::uint64_t value) noexcept {
  // Most are of one byte or two, as it comes: a branch would often be foreseen wrongly.
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

/// Reads what put_varint() wrote, without a look at where the bytes end; returns the byte behind
/// it. Reads at most varint_bytes, whatever they are.
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

/// Likewise, of bytes that may be anything and end at `end`; null where no number ends before.
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
