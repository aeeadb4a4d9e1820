// Keeps the directory of a run open, and reopens it if the program closes the descriptor.
#ifndef LOTUS_STORE_RUN_RUN_DIRECTORY_HPP
#define LOTUS_STORE_RUN_RUN_DIRECTORY_HPP

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "lotus/base/descriptor.hpp"
#include "lotus/base/environment.hpp"
#include "lotus/base/file.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The open directory of a run. Call descriptor() on any thread, and open() and close() under the
/// session's control lock.
class run_directory {
 public:
  /// Finds or creates the directory. Returns 0 or errno.
  LOTUS_DETAIL_COLD int open(log_location& location) noexcept {
    const int fd = location.open_directory();
    if (fd < 0) return -fd;
    const locked hold{lock_};
    held_ = owned_descriptor{fd};
    keep_path(location.directory);
    return 0;
  }

  /// Returns the directory's descriptor for immediate use. If the program has closed the
  /// descriptor, reopens the directory. If that fails, returns -errno: -ESTALE if the path now
  /// leads to another directory.
  LOTUS_DETAIL_COLD int descriptor() noexcept {
    const locked hold{lock_};
    return held_.holds() || reopen() == 0 ? held_.number() : -errno;
  }

  /// Whether the directory was deleted after it was opened.
  bool was_deleted() noexcept {
    const locked hold{lock_};
    struct stat status {};
    return held_.holds(status) && status.st_nlink == 0;
  }

  /// Opens the directory that has replaced a deleted one, if it belongs to the same user. Returns
  /// false if there is none.
  LOTUS_DETAIL_COLD bool follow() noexcept {
    const locked hold{lock_};
    struct stat before {};
    struct stat after {};
    if (*path_ == '\0' || !held_.holds(before)) return false;
    const int fd = open_at_high_fd(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return false;
    if (fstat(fd, &after) != 0 || after.st_nlink == 0 || after.st_uid != before.st_uid) {
      ::close(fd);
      return false;
    }
    held_.close();
    held_ = owned_descriptor{fd, after};
    return true;
  }

  LOTUS_DETAIL_COLD void close() noexcept {
    const locked hold{lock_};
    held_.close();
    *path_ = '\0';
  }

  /// Appends the path and prefix of the logs to the file that LOTUS_RUN_LIST names, so that
  /// `lotus-tool run` finds logs even if the program chooses their directory. Ignores failures.
  LOTUS_DETAIL_COLD void add_to_list(const char* prefix) const noexcept {
    const char* const list = environment_text(variable::run_list);
    if (list == nullptr || *path_ == '\0') return;
    const mapped<char[sizeof(path_) + sizeof(log_location::prefix) + 2]> memory;
    if (!memory) return;
    auto& line = *memory;
    const int length = std::snprintf(line, sizeof(line), "%s/%s\n", path_, prefix);
    const int fd = open_at_high_fd(AT_FDCWD, list, O_WRONLY | O_APPEND);
    if (fd < 0) return;
    write_all(fd, line, static_cast<std::size_t>(length));
    ::close(fd);
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  /// Stores the directory's absolute path, because the program may change its working directory.
  /// Stores an empty path if the path is too long.
  void keep_path(const char* path) noexcept {
    const mapped<char[sizeof(path_) / 2]> memory;
    if (!memory) return;
    auto& here = *memory;
    const bool absolute = *path == '/';
    if (!absolute && getcwd(here, sizeof(here)) == nullptr) return;
    std::snprintf(path_, sizeof(path_), "%s%s%s", here, absolute ? "" : "/", path);
  }

  /// Reopens the directory by its path. Returns 0, or -1 with errno set.
  int reopen() noexcept {
    const file_identity before = held_.file();
    const owned_descriptor again{open_at_high_fd(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY)};
    if (again.number() < 0) return -1;
    if (again.file().device == before.device && again.file().inode == before.inode) {
      held_ = again;
      return 0;
    }
    ::close(again.number());
    errno = ESTALE;
    return -1;
  }

  mutex lock_;
  owned_descriptor held_;
  /// Absolute path of the directory; empty if unknown.
  char path_[2 * sizeof(log_location::directory)] = "";
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_RUN_DIRECTORY_HPP
