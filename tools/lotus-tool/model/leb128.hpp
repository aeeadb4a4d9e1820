// Numbers of 64 bits in as few bytes as they need: LEB128 (DWARF 5, section 7.6).
#ifndef LOTUS_TOOL_MODEL_LEB128_HPP
#define LOTUS_TOOL_MODEL_LEB128_HPP

#include <cstddef>
#include <cstdint>

namespace lotus::tool {

/// Bytes that a number takes at most.
inline constexpr std::size_t leb128_bytes = 10;

/// Writes at most leb128_bytes bytes; returns the byte behind them.
inline char* put_leb128(char* to, std::uint64_t value) noexcept {
  for (; value >= 128U; value >>= 7U) *to++ = static_cast<char>(value | 128U);
  *to++ = static_cast<char>(value);
  return to;
}

/// Reads what put_leb128() wrote; returns the byte behind it.
inline const char* take_leb128(const char* from, std::uint64_t& value) noexcept {
  std::uint64_t byte = static_cast<unsigned char>(*from++);
  value = byte & 127U;
  for (unsigned shift = 7; byte >= 128U; shift += 7) {
    byte = static_cast<unsigned char>(*from++);
    value |= (byte & 127U) << shift;
  }
  return from;
}

/// Small numbers of either sign as small numbers: 0, -1, 1, -2 become 0, 1, 2, 3.
inline std::uint64_t zigzag(std::int64_t value) noexcept {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? ~(bits << 1U) : bits << 1U;
}

inline std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>((value >> 1U) ^ (0U - (value & 1U)));
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_LEB128_HPP
