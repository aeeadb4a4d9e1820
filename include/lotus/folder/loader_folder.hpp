// Opens or creates the folder of each named loader's logs, inside the run's directory.
#ifndef LOTUS_FOLDER_LOADER_FOLDER_HPP
#define LOTUS_FOLDER_LOADER_FOLDER_HPP

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/base/descriptor.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/record/names.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The directory in which a process writes its logs, and the properties of the logs that are
/// created there: prefix of the name, format, owner and permissions.
struct log_folder {
  int directory;  ///< borrowed descriptor of the run's directory, or -errno
  const char* prefix;
  file_owners owners;
  mode_t mode;       ///< permissions of new logs, before the umask applies
  const char* info;  ///< name of the information file of the process to which the logs belong
  name_lookup names;
  /// Whether the process writes compact logs, one for each thread, instead of text logs.
  bool compact;
  /// The status of a file whose owner, group and permissions new files get. If null, new files
  /// belong to this process's user and have the permissions `mode`.
  const struct stat* like = nullptr;

  /// Gives the new file `fd` the permissions `new_mode`, and the owner and group of `like`, which
  /// must not be null.
  /// @param status  status of `fd`.
  void give_away(int fd, const struct stat& status, mode_t new_mode) const noexcept {
    const bool other = like->st_uid != status.st_uid || like->st_gid != status.st_gid;
    // Errors are ignored, because only root can change the owner of a file.
    if (other && fchown(fd, like->st_uid, like->st_gid) != 0) errno = 0;
    if (fchmod(fd, new_mode) != 0) errno = 0;
  }
};

inline constexpr std::size_t max_folder_name_bytes = 200;

/// Writes the name of a loader's folder to `out`, which has max_folder_name_bytes + 1 bytes. It is
/// the loader's name as it appears in log lines, without the leading S; a long name is cut. `/` and
/// a leading `.` are escaped, so that the name cannot point outside the run's directory.
inline void put_loader_folder_name(char* out, std::string_view line_start) noexcept {
  char* const begin = out;
  const std::string_view name = line_start.substr(1, line_start.size() - 2);
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t bytes = name[i] == '%' ? 3 : 1;
    const bool escaped = name[i] == '/' || (name[i] == '.' && i == 0);
    const std::string_view text = name[i] == '/' ? "%2F" : escaped ? "%2E" : name.substr(i, bytes);
    if (static_cast<std::size_t>(out - begin) + text.size() > max_folder_name_bytes) break;
    for (const char c : text) *out++ = c;
    i += bytes;
  }
  *out = '\0';
}

/// Opens the folders of loaders, creates those that are missing, and closes them.
class loader_folders {
 public:
  explicit loader_folders(const log_folder& run) noexcept : run_{run} {}
  loader_folders(const loader_folders&) = delete;
  loader_folders& operator=(const loader_folders&) = delete;
  ~loader_folders() { close_last(); }

  /// Returns the descriptor of a loader's folder, or a negative error that file_error_text() can
  /// describe. This object owns the descriptor, which stays open until another loader is requested.
  int of(std::uint32_t loader) noexcept {
    if (loader == 0 || run_.directory < 0) return run_.directory;
    if (fd_ < 0 || loader != opened_) {
      close_last();
      fd_ = open_folder(loader);
      opened_ = loader;
    }
    return fd_;
  }

  /// Returns the name of the folder that of() last opened or failed to open.
  const char* name() const noexcept { return name_; }

 private:
  void close_last() noexcept {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  LOTUS_DETAIL_COLD int open_folder(std::uint32_t loader) noexcept {
    put_loader_folder_name(name_, run_.names(loader));
    // Users who may read the logs must also be allowed to enter the folder: each read permission
    // adds an execute permission.
    const auto mode_of = [](mode_t files) { return files | (files & 0444U) >> 2U; };
    const bool made = mkdirat(run_.directory, name_, mode_of(run_.mode)) == 0;
    if (!made && errno != EEXIST) return -errno;
    const int fd =
        open_at_high_fd(run_.directory, name_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return errno == ENOTDIR ? -error_of_other_file() : -errno;
    struct stat status {};
    int error = fstat(fd, &status) != 0 ? errno : 0;
    if (error == 0 && !run_.owners.allow(status.st_uid) && !made) error = of_another_user;
    if (error != 0) {
      close(fd);
      return -error;
    }
    if (made && run_.like != nullptr) {
      run_.give_away(fd, status, mode_of(run_.like->st_mode & 0666U));
    }
    return fd;
  }

  /// Returns the error for a file that has the folder's name but is no folder: ELOOP for a symbolic
  /// link.
  int error_of_other_file() const noexcept {
    struct stat status {};
    const bool link = fstatat(run_.directory, name_, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                      S_ISLNK(status.st_mode);
    return link ? ELOOP : not_a_folder;
  }

  const log_folder& run_;
  char name_[max_folder_name_bytes + 1] = {};
  std::uint32_t opened_ = 0;
  int fd_ = -1;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_LOADER_FOLDER_HPP
