// Finds the end of the last complete line or block in a log to which another process may be
// appending, so that a copy of the log ends there.
#ifndef LOTUS_RECOVERY_WHOLE_END_HPP
#define LOTUS_RECOVERY_WHOLE_END_HPP

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/format/compact_layout.hpp"
#include "lotus/recovery/ring_copy.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns the position after the last line break in the first `bytes` of a text log. Searches only
/// the last 64 KB, because lines are shorter; returns 0 if these contain no line break.
inline std::uint64_t end_of_whole_lines(int fd, std::uint64_t bytes) noexcept {
  const mapped<char[4096]> memory;
  if (!memory) return 0;
  char(&text)[4096] = *memory;
  std::uint64_t end = bytes;
  for (int i = 0; i < 16 && end > 0; ++i) {
    const std::size_t n = end < sizeof(text) ? static_cast<std::size_t>(end) : sizeof(text);
    if (!read_at(fd, text, n, end - n)) return 0;
    for (std::size_t at = n; at > 0; --at) {
      if (text[at - 1] == '\n') return end - n + at;
    }
    end -= n;
  }
  return 0;
}

/// Returns the position after the last complete block of a compact log. If a block is damaged,
/// returns `bytes`, so that the damage is copied too and the reader of the copy reports it.
inline std::uint64_t end_of_whole_blocks(int fd, std::uint64_t bytes) noexcept {
  std::uint64_t end = 0;
  while (bytes - end >= sizeof(compact_block_header)) {
    compact_block_header head{};
    if (!read_at(fd, static_cast<void*>(&head), sizeof(head), end)) return end;
    const bool is_one = std::memcmp(head.magic, compact_block_magic, sizeof(head.magic)) == 0 &&
                        head.bytes >= sizeof(head);
    if (!is_one) return bytes;
    if (head.bytes > bytes - end) return end;
    end += head.bytes;
  }
  return end;
}

/// Returns the position after the last complete line or block of a log.
/// @param status  status of the open file `fd`.
inline std::uint64_t whole_end(int fd, bool compact, const struct stat& status) noexcept {
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  return compact ? end_of_whole_blocks(fd, bytes) : end_of_whole_lines(fd, bytes);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_WHOLE_END_HPP
