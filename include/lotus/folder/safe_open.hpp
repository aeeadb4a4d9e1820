// Opens the files of a run safely. The library opens all files through these functions, because any
// user who can write to the run's directory may have put a link or a pipe there.
#ifndef LOTUS_FOLDER_SAFE_OPEN_HPP
#define LOTUS_FOLDER_SAFE_OPEN_HPP

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lotus/base/clock.hpp"
#include "lotus/base/descriptor.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/hidden_files.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

// Reasons why the library refuses to use a file. The numbers are far above all errno values, so
// that an int can contain either an errno value or a reason.
inline constexpr int not_regular = 10'001;
inline constexpr int has_other_names = 10'002;
inline constexpr int of_another_user = 10'003;
inline constexpr int not_a_folder = 10'004;

/// Whether the error means that the file was refused, rather than that the disk failed.
inline bool is_refusal(int error) noexcept {
  return error == ELOOP || error >= not_regular;
}

inline const char* file_error_text(int error) noexcept {
  switch (error) {
    case ELOOP:
      return "is a symbolic link";
    case not_regular:
      return "is no regular file";
    case has_other_names:
      return "is a hard link to a file that has other names";
    case of_another_user:
      return "belongs to another user";
    case not_a_folder:
      return "is no folder";
    default:
      return std::strerror(error);
  }
}

/// Opens the regular file `name` in `directory` (borrowed). Follows no symbolic link and does not
/// wait for the other end of a pipe. Returns a descriptor, -errno, or the negative number of a
/// reason to refuse the file.
inline int open_regular(int directory, const char* name, int flags, struct stat& status,
                        mode_t mode = 0) noexcept {
  const int fd = open_at_high_fd(directory, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
  if (fd < 0) return errno == ENXIO ? -not_regular : -errno;  // ENXIO: a pipe without a reader
  int error = fstat(fd, &status) != 0 ? errno : 0;
  if (error == 0 && !S_ISREG(status.st_mode)) error = not_regular;
  if (error == 0) return fd;
  close(fd);
  return -error;
}

/// The users whose files in a directory this process may change: files of other users are refused.
class file_owners {
 public:
  /// Returns the users whose files the calling user may change: the calling user itself and, if
  /// that is root, also the owner of the directory.
  static file_owners of_caller(int directory) noexcept {
    file_owners owners;
    owners.caller_ = owners.other_ = geteuid();
    struct stat status {};
    if (owners.caller_ == 0 && fstat(directory, &status) == 0) owners.other_ = status.st_uid;
    return owners;
  }
  static file_owners only(uid_t owner) noexcept {
    file_owners owners;
    owners.caller_ = owners.other_ = owner;
    return owners;
  }

  bool allow(uid_t owner) const noexcept { return owner == caller_ || owner == other_; }

  /// Replaces the calling user by the owner that the file system gives to new files, because a
  /// network file system may map all users to one user, or map root to another user. To find that
  /// owner, creates a file and deletes it again.
  void ask_file_system(int directory) noexcept {
    char name[96];
    std::snprintf(name, sizeof(name), "%s%u_%llx_owner", unfinished_ring_file_start,
                  static_cast<unsigned>(getpid()),
                  static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME)));
    struct stat status {};
    const int fd = open_regular(directory, name, O_WRONLY | O_CREAT | O_EXCL, status, 0600);
    if (fd < 0) return;
    caller_ = status.st_uid;
    unlinkat(directory, name, 0);
    close(fd);
  }

 private:
  uid_t caller_ = 0;
  uid_t other_ = 0;
};

/// Opens a file to change it. Refuses a file that has further hard links or belongs to another
/// user. The result is that of open_regular().
inline int open_own(int directory, const char* name, int flags, const file_owners& owners,
                    struct stat& status) noexcept {
  const int fd = open_regular(directory, name, flags, status);
  if (fd < 0) return fd;
  const int error = status.st_nlink > 1            ? has_other_names
                    : !owners.allow(status.st_uid) ? of_another_user
                                                   : 0;
  if (error == 0) return fd;
  close(fd);
  return -error;
}

/// Whether open_own() would refuse this file because of its owner.
inline bool belongs_to_another(int directory, const char* name,
                               const file_owners& owners) noexcept {
  struct stat status {};
  return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         !owners.allow(status.st_uid);
}

/// Opens a file to append to it; creates it if it does not exist. The result is that of
/// open_regular().
/// @param made  set to true if this call created the file.
LOTUS_DETAIL_COLD inline int open_to_append(int directory, const char* name,
                                            const file_owners& owners, mode_t mode,
                                            struct stat& status, bool& made) noexcept {
  int fd = -EEXIST;
  for (int attempt = 0; fd == -EEXIST && attempt < 3; ++attempt) {
    made = false;
    fd = open_own(directory, name, O_WRONLY | O_APPEND, owners, status);
    if (fd != -ENOENT) break;
    made = true;
    fd = open_regular(directory, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, status, mode);
  }
  return fd;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_SAFE_OPEN_HPP
