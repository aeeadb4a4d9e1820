// Lists the entries of a directory without allocating.
#ifndef LOTUS_BASE_DIRECTORY_ENTRIES_HPP
#define LOTUS_BASE_DIRECTORY_ENTRIES_HPP

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lotus/base/descriptor.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Calls `each(name)` for every entry of the directory `path`, which is relative to the descriptor
/// `directory`.
/// opendir() is not used, because it allocates, and the caller may be a signal handler that
/// interrupted malloc, or a forked child in which a lock of malloc stays held.
LOTUS_DETAIL_COLD inline void for_each_entry(int directory,
                                             function_ref<void(const char* name)> each,
                                             const char* path = ".") noexcept {
  const mapped<char[4096]> memory;
  const int fd = memory ? open_at_high_fd(directory, path, O_RDONLY | O_DIRECTORY) : -1;
  if (fd < 0) return;
  // Layout of a getdents64(2) entry: inode, offset, length of the entry, type, name.
  constexpr std::size_t length_at = 16;
  constexpr std::size_t name_at = 19;
  char(&entries)[4096] = *memory;
  long bytes = 0;
  while ((bytes = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
    for (const char* at = entries; at < entries + bytes;) {
      each(at + name_at);
      std::uint16_t length = 0;
      std::memcpy(&length, at + length_at, sizeof(length));
      at += length;
    }
  }
  close(fd);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_DIRECTORY_ENTRIES_HPP
