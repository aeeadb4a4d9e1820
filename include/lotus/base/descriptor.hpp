// Descriptors in somebody else's program: out of its way, and used only while they are ours.
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

/// Moves a fresh descriptor to a number that the program does not count on: where it was started
/// without 0, 1 or 2, a file of ours would be what it prints to. The number is high where there is
/// room, and never below 3. Returns it, close-on-exec, or -1 with errno; then `fd` is closed.
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

/// openat(2), close-on-exec and out of the way.
inline int open_out_of_the_way(int directory, const char* path, int flags,
                               mode_t mode = 0) noexcept {
  return out_of_the_way(openat(directory, path, flags | O_CLOEXEC, mode));
}

/// Which file a descriptor is of.
struct file_identity {
  dev_t device = 0;
  ino_t inode = 0;

  bool is(const struct stat& status) const noexcept {
    return status.st_dev == device && status.st_ino == inode;
  }
};

/// A descriptor that stays open while the program runs, which may close it, as daemons do, and get
/// the number for a file of its own: ask holds() before each use. A program that itself opens the
/// same file under this number is not told from us. Copies share it, and it is never closed by
/// itself. Thread safety: none. Not for anonymous files, which all have one inode.
class owned_descriptor {
 public:
  owned_descriptor() noexcept = default;
  /// @param fd  open, with this status.
  owned_descriptor(int fd, const struct stat& status) noexcept
      : fd_{fd}, file_{status.st_dev, status.st_ino} {}
  /// @param fd  -1: none
  explicit owned_descriptor(int fd) noexcept {
    struct stat status {};
    if (fd >= 0 && fstat(fd, &status) == 0) *this = {fd, status};
  }

  /// Just the number; -1: none.
  int number() const noexcept { return fd_; }
  const file_identity& file() const noexcept { return file_; }

  /// Whether the file is open and this is still its number. One system call.
  bool holds() const noexcept {
    struct stat status {};
    return holds(status);
  }
  bool holds(struct stat& status) const noexcept {
    return fd_ >= 0 && fstat(fd_, &status) == 0 && file_.is(status);
  }

  /// Closes it, if it is still ours.
  void close() noexcept {
    if (holds()) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
  file_identity file_;
};

/// A log that is kept open; it may be moved away meanwhile.
struct open_log {
  owned_descriptor file;
  std::int64_t looked_ns = 0;  ///< when its name was last looked at, CLOCK_MONOTONIC
};

template <std::size_t Count>
void close_all(open_log (&logs)[Count]) noexcept {
  for (open_log& log : logs) log.file.close();
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_DESCRIPTOR_HPP
