// Appends lines or blocks to the logs of a ring, so that an append that a crash interrupts can be
// undone.
#ifndef LOTUS_FOLDER_LOG_APPENDER_HPP
#define LOTUS_FOLDER_LOG_APPENDER_HPP

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "lotus/base/clock.hpp"
#include "lotus/base/descriptor.hpp"
#include "lotus/base/file.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/folder/loader_folder.hpp"
#include "lotus/folder/log_claims.hpp"
#include "lotus/folder/log_parts.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/ring_layout.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Maximum number of bytes that one append operation adds to a log.
inline constexpr std::size_t max_append_bytes = std::size_t{128} << 10;

/// Returns the number at the end of the names of a ring's logs: usually the id of the ring's
/// thread.
inline std::uint32_t log_number(const ring_block& ring, const log_position& at) noexcept {
  return at.number != 0 ? at.number : ring.tid.load(std::memory_order_relaxed);
}

/// Appends to the logs of one ring. Before and after every append, the length of the log is stored
/// in the ring (a commit). So if a crash interrupts an append, exactly its bytes can be removed
/// later.
class log_appender {
 public:
  /// @param logs  the ring's logs; borrowed. begin() opens a log, which then stays open.
  /// @param ring_file  descriptor of the ring file, if `ring` is a copy; then commits are also
  ///   written to it.
  /// @param ring_at    position of the ring in that file.
  log_appender(const log_folder& folder, ring_block& ring, open_log (&logs)[log_roles],
               int ring_file = -1, std::uint64_t ring_at = 0) noexcept
      : folder_{folder},
        loaders_{folder},
        ring_{ring},
        records_of_{&ring},
        logs_{logs},
        ring_file_{ring_file},
        ring_at_{ring_at} {}
  log_appender(const log_appender&) = delete;
  log_appender& operator=(const log_appender&) = delete;

  /// Returns a log's inode, length and number as they were last stored in the ring.
  const log_position& position(log_role role) const noexcept {
    return ring_.committed().logs[static_cast<std::size_t>(role)];
  }

  /// Opens the log if it is not open, and stores its length in the ring before append() makes it
  /// longer. Returns 0 or an error that file_error_text() can describe.
  /// @param loader  id of the name of the loader to which the lines belong; 0: the default loader.
  int begin(log_role role, std::uint32_t loader) noexcept {
    open_log& log = logs_[static_cast<std::size_t>(role)];
    struct stat status {};
    bool open = log.file.holds(status);
    const bool another = position(role).loader != loader;
    if (open && (another || status.st_nlink == 0 || was_moved(role, status))) {
      undo(role);    // removes the bytes of an earlier append that failed
      open = false;  // the log was deleted or moved while it was open, so a new one is created
    }
    commit_point c = ring_.committed();
    log_position& at = c.logs[static_cast<std::size_t>(role)];
    if (another) at = {0, 0, false, at.number, loader};
    if (!open) {
      log.file.close();
      const int opened = open_log_file(role, at, status);
      if (opened < 0) return -opened;
      log = {{opened, status}, clock_ns(CLOCK_MONOTONIC_COARSE)};
    }
    at = {static_cast<std::uint64_t>(status.st_ino), static_cast<std::uint64_t>(status.st_size),
          true, at.number, loader};
    return commit_to_file(c);
  }

  /// Appends complete lines or blocks; call begin() first. On failure, restores the log's old
  /// length. Returns 0 or errno.
  int append(log_role role, const char* lines, std::size_t bytes) noexcept {
    const int error = write_all(logs_[static_cast<std::size_t>(role)].file.number(), lines, bytes);
    if (error != 0) {
      undo(role);
      return error;
    }
    appended_[static_cast<std::size_t>(role)] = bytes;
    return 0;
  }

  /// Removes the bytes that were appended since the log's length was last stored in the ring.
  LOTUS_DETAIL_COLD void undo(log_role role) noexcept {
    const auto i = static_cast<std::size_t>(role);
    commit_point c = ring_.committed();
    appended_[i] = 0;
    if (!c.logs[i].appending) return;
    const owned_descriptor& log = logs_[i].file;
    if (log.holds() && ftruncate(log.number(), static_cast<off_t>(c.logs[i].length)) != 0) return;
    c.logs[i].appending = false;
    commit_to_file(c);
  }

  /// Selects the ring from which the next records are appended: initially the ring itself, later
  /// possibly a copy of it in private memory. commit() then stores `tail` in the selected ring. The
  /// lengths of the logs are always stored in the ring itself, because its contents survive if the
  /// process is killed.
  void take_records_of(ring_block& from) noexcept { records_of_ = &from; }

  /// Stores in the ring that the records of this lane (one of the ring's circular buffers) before
  /// the position `tail` are in the logs, and to which loader the next records of the main lane
  /// belong. Returns 0 or errno.
  int commit(std::size_t lane, std::uint64_t tail, std::uint32_t loader) noexcept {
    commit_point c = records_of_->committed();
    c.tail[lane] = tail;
    c.loader = loader;
    if (records_of_ == &ring_) return commit_lines(c);
    // The appended records come from a copy of the ring, so they were only in memory until now.
    // Therefore this commit also reduces the number of records in memory that is stored in the
    // ring.
    commit_point of_ring = ring_.committed();
    of_ring.in_memory -= static_cast<std::uint32_t>(tail - records_of_->committed().tail[lane]);
    records_of_->commit(c);
    return commit_lines(of_ring);
  }

  /// Removes the bytes of an append that a crash interrupted. If a log has grown by more than
  /// max_append_bytes, another process has appended to it, and nothing is removed from it. Call
  /// this before any append.
  LOTUS_DETAIL_COLD void undo_torn() noexcept {
    for (std::size_t i = 0; i < log_roles; ++i) {
      const log_position at = ring_.committed().logs[i];
      if (!at.appending) continue;
      struct stat status {};
      const int fd = open_torn(static_cast<log_role>(i), at, status);
      if (fd < 0) continue;
      logs_[i].file.close();
      logs_[i] = {{fd, status}, 0};
      const auto bytes = static_cast<std::uint64_t>(status.st_size);
      if (bytes > at.length && bytes - at.length <= max_append_bytes) {
        undo(static_cast<log_role>(i));
      }
      // Closes the log, because it may have been renamed to a part, to which nothing must be
      // appended.
      logs_[i].file.close();
    }
  }

  /// Name of the log or loader's folder that was opened last, or that could not be opened: for
  /// error messages.
  const char* name() const noexcept { return name_; }

 private:
  int commit_lines(commit_point c) noexcept {
    for (std::size_t i = 0; i < log_roles; ++i) {
      c.logs[i].length += appended_[i];
      c.logs[i].appending = false;
    }
    const int error = commit_to_file(c);
    for (std::size_t i = 0; i < log_roles; ++i) {
      // If the commit failed, the appended lines are removed from the log, because they will be
      // appended again.
      if (error != 0 && appended_[i] != 0) undo(static_cast<log_role>(i));
      appended_[i] = 0;
    }
    return error;
  }

  /// Stores a commit in the ring and, if the ring is a copy of a ring in a ring file, also in that
  /// file. The index of the current commit is written after the commit itself, so that it always
  /// refers to a completely written commit.
  int commit_to_file(const commit_point& c) noexcept {
    if (ring_file_ >= 0) {
      const std::uint32_t next = 1 - ring_.commit_index.load(std::memory_order_relaxed);
      int error = write_at(&c, sizeof(c), offsetof(ring_block, commits) + next * sizeof(c));
      if (error == 0) error = write_at(&next, sizeof(next), offsetof(ring_block, commit_index));
      if (error != 0) return error;
    }
    ring_.commit(c);
    return 0;
  }

  int write_at(const void* data, std::size_t bytes, std::size_t offset) const noexcept {
    ssize_t n = 0;
    do {
      n = pwrite(ring_file_, data, bytes, static_cast<off_t>(ring_at_ + offset));
    } while (n < 0 && errno == EINTR);
    if (n < 0) return errno;
    return static_cast<std::size_t>(n) == bytes ? 0 : EIO;
  }

  void put_name(log_role role, std::uint32_t number) noexcept {
    put_log_name(name_, sizeof(name_), folder_.prefix, role, folder_.compact, number);
  }

  /// Whether an open log was renamed, for example by logrotate. Checks at most twice a second.
  LOTUS_DETAIL_COLD bool was_moved(log_role role, const struct stat& status) noexcept {
    constexpr std::int64_t between_ns = 500'000'000;
    std::int64_t& checked_ns = logs_[static_cast<std::size_t>(role)].checked_ns;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (now_ns - checked_ns < between_ns) return false;
    checked_ns = now_ns;
    const log_position& at = position(role);
    const int folder = loaders_.of(at.loader);
    // If the folder cannot be opened, the log counts as renamed: begin() then tries to open the log
    // again, and returns the error.
    if (folder < 0) return true;
    put_name(role, log_number(ring_, at));
    struct stat named {};
    if (fstatat(folder, name_, &named, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
    return named.st_ino != status.st_ino || named.st_dev != status.st_dev;
  }

  /// Opens the log that a crash left with an unfinished append, even if the log was renamed.
  int open_torn(log_role role, const log_position& at, struct stat& status) noexcept {
    const int folder = loaders_.of(at.loader);
    if (folder < 0) return folder;
    put_name(role, log_number(ring_, at));
    const auto open_if_it = [&](const char* name) {
      const int fd = open_own(folder, name, O_WRONLY | O_APPEND, folder_.owners, status);
      if (fd < 0 || status.st_ino == at.inode) return fd;
      close(fd);
      return -ENOENT;
    };
    int fd = open_if_it(name_);
    if (fd != -ENOENT) return fd;
    const std::size_t bytes = std::strlen(name_);
    for_each_entry(folder, [&](const char* name) {
      if (fd >= 0 || std::strncmp(name, name_, bytes) != 0 || name[bytes] != '.') return;
      fd = open_if_it(name);
    });
    return fd;
  }

  /// Opens or creates a log. Returns its descriptor or a negative error.
  /// @param at  position of the log; its `number` changes if another process uses the log with that
  ///   number.
  LOTUS_DETAIL_COLD int open_log_file(log_role role, log_position& at,
                                      struct stat& status) noexcept {
    const int folder = loaders_.of(at.loader);
    if (folder < 0) {
      std::snprintf(name_, sizeof(name_), "%s", loaders_.name());
      return folder;
    }
    // All logs of a thread should have the same number in their names, so the number of the
    // thread's other logs is tried first.
    for (const log_position& other : ring_.committed().logs) {
      if (at.number == 0) at.number = other.number;
    }
    constexpr int max_numbers = 16;
    for (int attempt = 0; attempt < max_numbers; ++attempt) {
      const std::uint32_t tid = ring_.tid.load(std::memory_order_relaxed);
      const std::uint32_t named = at.number != 0 ? at.number : tid;
      put_name(role, named);
      bool made = false;
      const int fd = open_to_append(folder, name_, folder_.owners, folder_.mode, status, made);
      if (fd < 0) return fd;
      if (made && folder_.like != nullptr) {
        folder_.give_away(fd, status, folder_.like->st_mode & 0666U);
      }
      const bool known =
          at.inode == status.st_ino && at.length == static_cast<std::uint64_t>(status.st_size);
      if (made || known || !log_number_is_anothers(folder_.directory, folder_.info, named)) {
        return fd;
      }
      close(fd);
      at.number = number_of_no_thread(tid);
      report_log_number(folder_.directory, folder_.info, folder_.owners, at.number, tid);
    }
    return -EEXIST;
  }

  const log_folder& folder_;
  loader_folders loaders_;
  ring_block& ring_;
  ring_block* records_of_;
  open_log (&logs_)[log_roles];
  int ring_file_;
  std::uint64_t ring_at_;
  std::size_t appended_[log_roles] = {};
  char name_[log_name_bytes] = {};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_LOG_APPENDER_HPP
