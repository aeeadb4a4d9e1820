// Lines to append-only log files.
#ifndef LOTUS_WRITER_HPP
#define LOTUS_WRITER_HPP

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "lotus/config.hpp"
#include "lotus/layout.hpp"
#include "lotus/open_logs.hpp"
#include "lotus/record.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Writes "<prefix>_<main|worker>_pid_<tid>" to `out` (prefix + 40 bytes).
inline void put_log_name(char* out, std::size_t bytes, const char* prefix, log_role role,
                         std::uint32_t tid) noexcept {
  std::snprintf(out, bytes, "%s_%s_pid_%u", prefix, role == log_role::main ? "main" : "worker",
                tid);
}

/// Appends all of `data`; resumes after EINTR and short writes. Returns 0 or errno.
inline int write_all(int fd, const char* data, std::size_t bytes) noexcept {
  while (bytes > 0) {
    const ssize_t n = write(fd, data, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;
    data += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return 0;
}

/// Appends to the logs of one ring. Every append is bracketed by commits, so a death in between
/// leaves bytes that are known to be half an append, and only those.
class log_appender {
 public:
  /// @param directory  descriptor of the logs' directory, borrowed.
  /// @param logs       borrowed; opened where closed, left open.
  log_appender(int directory, const char* prefix, ring_block& ring, open_logs& logs) noexcept
      : directory_{directory}, prefix_{prefix}, ring_{ring}, fds_{logs.fds} {}
  log_appender(const log_appender&) = delete;
  log_appender& operator=(const log_appender&) = delete;

  /// Marks the log as about to grow. Returns 0 or errno.
  int begin(log_role role) noexcept {
    int& fd = fds_[static_cast<std::size_t>(role)];
    struct stat status {};
    if (fd >= 0) {
      const bool there = fstat(fd, &status) == 0;
      const std::uint64_t inode = ring_.committed().logs[static_cast<std::size_t>(role)].inode;
      if (!there || (inode != 0 && inode != status.st_ino)) {
        fd = -1;  // the program has closed it, and the number is nobody's or another file's
      } else if (status.st_nlink == 0) {
        close(fd);  // deleted while it was open: a new one is made
        fd = -1;
      }
    }
    if (fd < 0) {
      fd = open_log(role, O_CREAT);
      if (fd < 0 || fstat(fd, &status) != 0) return errno;
    }
    commit_point c = ring_.committed();
    c.logs[static_cast<std::size_t>(role)] = {static_cast<std::uint64_t>(status.st_ino),
                                              static_cast<std::uint64_t>(status.st_size), true};
    ring_.commit(c);
    return 0;
  }

  /// Appends whole lines after begin(). On an error the file is as it was before. Returns 0 or
  /// errno.
  int append(log_role role, const char* lines, std::size_t bytes) noexcept {
    const int error = write_all(fds_[static_cast<std::size_t>(role)], lines, bytes);
    if (error != 0) {
      undo(role);
      return error;
    }
    appended_[static_cast<std::size_t>(role)] = bytes;
    return 0;
  }

  /// Takes back what was appended since the last commit.
  void undo(log_role role) noexcept {
    const auto i = static_cast<std::size_t>(role);
    commit_point c = ring_.committed();
    appended_[i] = 0;
    if (!c.logs[i].appending) return;
    if (fds_[i] >= 0 && ftruncate(fds_[i], static_cast<off_t>(c.logs[i].length)) != 0) return;
    c.logs[i].appending = false;
    ring_.commit(c);
  }

  /// Says that the records before `tail` of `lane` stand in the logs.
  void commit(std::size_t lane, std::uint64_t tail) noexcept {
    commit_point c = ring_.committed();
    c.tail[lane] = tail;
    commit_lines(c);
  }

  /// Says that what was appended, of records of another ring, is whole.
  void commit_lines() noexcept { commit_lines(ring_.committed()); }

  /// Cuts off what a death left of an append. Call it before anything else is appended.
  void undo_torn() noexcept {
    for (std::size_t i = 0; i < log_roles; ++i) {
      const log_position at = ring_.committed().logs[i];
      if (!at.appending) continue;
      if (fds_[i] < 0) fds_[i] = open_log(static_cast<log_role>(i), 0);
      struct stat status {};
      if (fds_[i] >= 0 && fstat(fds_[i], &status) == 0 && status.st_ino == at.inode &&
          static_cast<std::uint64_t>(status.st_size) > at.length) {
        undo(static_cast<log_role>(i));
      }
    }
  }

 private:
  void commit_lines(commit_point c) noexcept {
    for (std::size_t i = 0; i < log_roles; ++i) {
      c.logs[i].length += appended_[i];
      c.logs[i].appending = false;
      appended_[i] = 0;
    }
    ring_.commit(c);
  }

  int open_log(log_role role, int flags) const noexcept {
    char name[max_prefix_bytes + 48];
    put_log_name(name, sizeof(name), prefix_, role, ring_.tid.load(std::memory_order_relaxed));
    return openat(directory_, name, O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0666);
  }

  int directory_;
  const char* prefix_;
  ring_block& ring_;
  int (&fds_)[log_roles];
  std::size_t appended_[log_roles] = {};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_WRITER_HPP
