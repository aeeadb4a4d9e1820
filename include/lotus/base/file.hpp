// Reads from file descriptors and writes to them.
#ifndef LOTUS_BASE_FILE_HPP
#define LOTUS_BASE_FILE_HPP

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>

#include "lotus/base/descriptor.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Keeps a write of the library from killing the program when a pipe is closed (SIGPIPE) or
/// RLIMIT_FSIZE is exceeded (SIGXFSZ): blocks both signals for this thread while the object exists.
/// after() removes a signal that the library's own call raised; a signal that was pending before
/// stays, because it belongs to the program. Takes three system calls.
class write_signals_blocked {
 public:
  write_signals_blocked() noexcept {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGPIPE);
    sigaddset(&both, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &both, &before_);
    sigpending(&pending_);
  }
  ~write_signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  write_signals_blocked(const write_signals_blocked&) = delete;
  write_signals_blocked& operator=(const write_signals_blocked&) = delete;

  /// Removes the signal that a failed system call of the library raised. Returns `error`.
  /// @param error  errno of that call.
  int after(int error) const noexcept {
    const int raised = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    if (raised == 0 || sigismember(&pending_, raised) == 1) return error;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, raised);
    const timespec at_once{};
    while (sigtimedwait(&one, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    return error;
  }

 private:
  sigset_t before_;
  sigset_t pending_;
};

/// Reads the beginning of a file, such as one in /proc, as far as it fits in `text`, and terminates
/// it with a zero. Returns the number of bytes, which is 0 if the file cannot be read.
template <std::size_t Bytes>
std::size_t read_beginning(const char* path, char (&text)[Bytes]) noexcept {
  const int fd = open_at_high_fd(AT_FDCWD, path, O_RDONLY);
  const ssize_t got = fd >= 0 ? read(fd, text, Bytes - 1) : 0;
  if (fd >= 0) close(fd);
  const std::size_t bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
  text[bytes] = '\0';
  return bytes;
}

/// Writes all of `data`; resumes after EINTR and short writes. Returns 0 or errno.
LOTUS_DETAIL_COLD inline int write_all(int fd, const void* data, std::size_t bytes) noexcept {
  const write_signals_blocked signals;
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = write(fd, from, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return signals.after(errno);
    if (n == 0) return EIO;
    from += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return 0;
}

/// Extends an empty file to `bytes` without allocating disk space. Returns 0 or errno.
inline int lengthen(int fd, std::size_t bytes) noexcept {
  const write_signals_blocked signals;
  return ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? 0 : signals.after(errno);
}

/// Extends a file that has `held` bytes by another `bytes`, and allocates disk space for them.
/// Returns 0 or errno.
inline int reserve(int fd, std::size_t held, std::size_t bytes) noexcept {
  const write_signals_blocked signals;
  return signals.after(posix_fallocate(fd, static_cast<off_t>(held), static_cast<off_t>(bytes)));
}

/// Reads `bytes` at `offset`; returns false if the file is shorter.
inline bool read_at(int fd, void* to, std::size_t bytes, std::uint64_t offset) noexcept {
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = pread(fd, out, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    out += n;
    offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_FILE_HPP
