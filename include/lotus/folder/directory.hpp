// Finds or creates the directory of a run and lists its entries.
#ifndef LOTUS_FOLDER_DIRECTORY_HPP
#define LOTUS_FOLDER_DIRECTORY_HPP

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lotus/base/descriptor.hpp"
#include "lotus/base/directory_entries.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/record/ring_layout.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The option log_file, split into directory and prefix: "run/log" becomes "run" and "log". If
/// "run" is a directory, "run" means the same as "run/".
struct log_location {
  char directory[4096];
  char prefix[max_prefix_bytes + 1];

  /// Splits the option log_file. Returns 0, or ENAMETOOLONG if it is too long.
  LOTUS_DETAIL_COLD int parse(std::string_view log_file) noexcept {
    const std::size_t slash = log_file.rfind('/');
    std::string_view folder = slash == std::string_view::npos ? "."
                              : slash == 0                    ? "/"
                                                              : log_file.substr(0, slash);
    std::string_view name = slash == std::string_view::npos ? log_file : log_file.substr(slash + 1);
    if (is_directory(log_file)) {
      folder = log_file;
      name = {};
    }
    if (name.empty()) name = "lotustrace_log";
    if (folder.size() >= sizeof(directory) || name.size() >= sizeof(prefix)) return ENAMETOOLONG;
    std::memcpy(directory, folder.data(), folder.size());
    directory[folder.size()] = '\0';
    std::memcpy(prefix, name.data(), name.size());
    prefix[name.size()] = '\0';
    return 0;
  }

  /// Opens the directory; creates it and its parents if missing. Returns a descriptor or -errno.
  int open_directory() noexcept {
    for (char* p = directory + 1; *p != '\0'; ++p) {
      if (*p != '/') continue;
      *p = '\0';
      const int made = mkdir(directory, 0777);
      const int error = errno;
      *p = '/';
      // If a parent directory cannot be created, the attempt to open the whole path further down
      // fails too, and its error is returned.
      if (made != 0 && error != EEXIST) break;
    }
    if (mkdir(directory, 0777) != 0 && errno != EEXIST) return -errno;
    const int fd = open_at_high_fd(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return -errno;
    if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
      const int error = errno;
      close(fd);
      return -error;
    }
    return fd;
  }

 private:
  /// Uses `directory` as its buffer, because the stack of the thread may be small.
  bool is_directory(std::string_view name) noexcept {
    if (name.empty() || name.size() >= sizeof(directory)) return false;
    std::memcpy(directory, name.data(), name.size());
    directory[name.size()] = '\0';
    struct stat status {};
    const int error = errno;
    const bool is = stat(directory, &status) == 0 && S_ISDIR(status.st_mode);
    errno = error;
    return is;
  }
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_DIRECTORY_HPP
