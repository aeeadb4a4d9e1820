// File descriptors inside the user's program: kept off its numbers, and checked before each use.
#ifndef LOTUS_BASE_DESCRIPTOR_HPP
#define LOTUS_BASE_DESCRIPTOR_HPP

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Moves a new descriptor to a number that the program does not expect: if it was started without
/// 0, 1 or 2, it would otherwise print into our file. The new number is high if possible, and never
/// below 3. Returns it, close-on-exec, or -1 with errno; then `fd` is closed.
inline int out_of_the_way(int fd) noexcept {
  constexpr int high = 64;
  if (fd < 0 || fd >= high) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, high);
  if (moved < 0 && fd > STDERR_FILENO) return fd;
  if (moved < 0) moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(fd);
  errno = error;
  return moved;
}

/// openat(2), close-on-exec, with a number from out_of_the_way().
inline int open_out_of_the_way(int directory, const char* path, int flags,
                               mode_t mode = 0) noexcept {
  return out_of_the_way(openat(directory, path, flags | O_CLOEXEC, mode));
}

/// Identifies the file that a descriptor refers to.
struct file_identity {
  dev_t device = 0;
  ino_t inode = 0;

  bool is(const struct stat& status) const noexcept {
    return status.st_dev == device && status.st_ino == inode;
  }
};

/// A descriptor that stays open while the program runs. The program may close it, as daemons do,
/// and reuse its number for another file: call holds() before each use. If the program opens the
/// same file under this number, we cannot detect that. Copies share the descriptor, and the
/// destructor does not close it. Thread safety: none. Not for anonymous files, because they all
/// have the same inode.
class owned_descriptor {
 public:
  owned_descriptor() noexcept = default;
  /// @param fd  an open descriptor with this status.
  owned_descriptor(int fd, const struct stat& status) noexcept
      : fd_{fd}, file_{status.st_dev, status.st_ino} {}
  /// @param fd  an open descriptor, or -1 for none.
  explicit owned_descriptor(int fd) noexcept {
    struct stat status {};
    if (fd >= 0 && fstat(fd, &status) == 0) *this = {fd, status};
  }

  /// Returns the number without checking it; -1: none.
  int number() const noexcept { return fd_; }
  const file_identity& file() const noexcept { return file_; }

  /// Whether the file is still open under this number. One system call.
  bool holds() const noexcept {
    struct stat status {};
    return holds(status);
  }
  bool holds(struct stat& status) const noexcept {
    return fd_ >= 0 && fstat(fd_, &status) == 0 && file_.is(status);
  }

  /// Closes the descriptor if it still refers to our file.
  void close() noexcept {
    if (holds()) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
  file_identity file_;
};

/// A log that is kept open; its file may be moved meanwhile.
struct open_log {
  owned_descriptor file;
  std::int64_t looked_ns = 0;  ///< CLOCK_MONOTONIC time when the file of this name was last checked
};

template <std::size_t Count>
void close_all(open_log (&logs)[Count]) noexcept {
  for (open_log& log : logs) log.file.close();
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_DESCRIPTOR_HPP
