// Lists the memory mappings of this process.
#ifndef LOTUS_BASE_MAPPINGS_HPP
#define LOTUS_BASE_MAPPINGS_HPP

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string_view>

#include "lotus/base/descriptor.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Calls `each(line)` for every line of /proc/self/maps, until `each` returns true. Allocates
/// nothing.
LOTUS_DETAIL_COLD inline void for_each_mapping(function_ref<bool(std::string_view)> each) noexcept {
  const mapped<char[8192]> memory;
  const int fd = memory ? open_at_high_fd(AT_FDCWD, "/proc/self/maps", O_RDONLY) : -1;
  if (fd < 0) return;
  char(&text)[8192] = *memory;
  std::size_t held = 0;
  ssize_t got = 0;
  bool found = false;
  while (!found && (got = read(fd, text + held, sizeof(text) - held)) > 0) {
    held += static_cast<std::size_t>(got);
    std::size_t at = 0;
    while (const void* end = std::memchr(text + at, '\n', held - at)) {
      const auto length = static_cast<std::size_t>(static_cast<const char*>(end) - (text + at));
      if ((found = each(std::string_view{text + at, length}))) break;
      at += length + 1;
    }
    // Discards a line that is longer than the buffer.
    held = held == sizeof(text) && at == 0 ? 0 : held - at;
    std::memmove(text, text + at, held);
  }
  close(fd);
}

/// Returns the path at the end of a line of /proc/self/maps; empty if there is none.
inline std::string_view mapped_path(std::string_view line) noexcept {
  const std::size_t slash = line.find('/');
  return slash == std::string_view::npos ? std::string_view{} : line.substr(slash);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_MAPPINGS_HPP
