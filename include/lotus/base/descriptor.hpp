// Opens file descriptors with high numbers, so that the user's program does not close or reuse them
// by accident, and checks whether they still refer to the library's files.
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

/// Moves a new descriptor to a number that the program does not use. Otherwise, if the program was
/// started with descriptor 0, 1 or 2 closed, the library's file could get that number, and the
/// program would print into the file. The new number is high if possible, and never below 3.
/// Returns the new descriptor, which is close-on-exec. On failure, closes `fd`, sets errno and
/// returns -1.
inline int move_to_high_fd(int fd) noexcept {
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

/// Like openat(2), but the descriptor is close-on-exec and has a number from move_to_high_fd().
inline int open_at_high_fd(int directory, const char* path, int flags, mode_t mode = 0) noexcept {
  return move_to_high_fd(openat(directory, path, flags | O_CLOEXEC, mode));
}

/// Identifies the file to which a descriptor refers.
struct file_identity {
  dev_t device = 0;
  ino_t inode = 0;

  bool is(const struct stat& status) const noexcept {
    return status.st_dev == device && status.st_ino == inode;
  }
};

/// A descriptor of the library that stays open while the program runs. The program may close it, as
/// daemons do with all descriptors, and reuse its number for another file, so call holds() before
/// each use. (holds() does not notice if the program opens the same file under this number.) Copies
/// share the descriptor, and the destructor does not close it. Not for anonymous files, which share
/// one inode. Thread safety: none.
class owned_descriptor {
 public:
  owned_descriptor() noexcept = default;
  /// @param fd      an open descriptor.
  /// @param status  what fstat(2) returns for `fd`.
  owned_descriptor(int fd, const struct stat& status) noexcept
      : fd_{fd}, file_{status.st_dev, status.st_ino} {}
  /// @param fd  an open descriptor, or -1 for none.
  explicit owned_descriptor(int fd) noexcept {
    struct stat status {};
    if (fd >= 0 && fstat(fd, &status) == 0) *this = {fd, status};
  }

  int number() const noexcept { return fd_; }
  const file_identity& file() const noexcept { return file_; }

  /// Whether the file is still open under this descriptor. Takes one system call.
  bool holds() const noexcept {
    struct stat status {};
    return holds(status);
  }
  bool holds(struct stat& status) const noexcept {
    return fd_ >= 0 && fstat(fd_, &status) == 0 && file_.is(status);
  }

  /// Closes the descriptor if it still refers to this object's file.
  void close() noexcept {
    if (holds()) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
  file_identity file_;
};

/// A log that stays open between appends. The file may be renamed in the meantime.
struct open_log {
  owned_descriptor file;
  std::int64_t checked_ns = 0;  ///< CLOCK_MONOTONIC time at which the log's name was last checked
};

template <std::size_t Count>
void close_all(open_log (&logs)[Count]) noexcept {
  for (open_log& log : logs) log.file.close();
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_DESCRIPTOR_HPP
