// Writes the files of waits and of stacks, in which a process records what its threads wait for,
// and in which calls. Each write ends with a complete line, so that the files are readable after a
// kill.
#ifndef LOTUS_WAITS_WAIT_FILE_HPP
#define LOTUS_WAITS_WAIT_FILE_HPP

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "lotus/base/descriptor.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/safe_open.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The directory, name and settings of a file of waits or of stacks.
struct wait_folder {
  const char* start = waits_file_start;  ///< beginning of the file's name
  int directory = -1;  ///< descriptor of the run's directory, borrowed; negative: none
  mode_t mode = 0;     ///< permissions of a new file, before the umask applies
  char info[64] = "";  ///< name of the process's information file; "": none yet
  /// When the file exceeds this size, it replaces the previous file "..._older" and a new file
  /// begins; 0: the file grows without limit.
  std::uint64_t max_bytes = 0;
};

/// A file of waits or of stacks. Lines are passed to the kernel immediately, so they survive a kill
/// of the process. While the disk is nearly full, lines are dropped, because they are only samples,
/// and the logs need the rest of the disk. Not thread-safe. Trivially destructible.
class wait_file {
 public:
  /// Whether the file is open, was not deleted and is not too long, so that lines can be appended
  /// to it. Costs one system call.
  /// @param max_bytes  maximum size of the file; 0: unlimited.
  bool ready(std::uint64_t max_bytes) noexcept {
    return file_.holds(status_) && status_.st_nlink > 0 &&
           (max_bytes == 0 || static_cast<std::uint64_t>(status_.st_size) <= max_bytes);
  }

  /// Opens or creates the file; call this function if ready() is false. Returns false if the file
  /// cannot be opened.
  bool begin(const wait_folder& folder) noexcept {
    if (folder.directory < 0 || *folder.info == '\0') return false;
    if (file_.holds(status_) && status_.st_nlink > 0) make_older(folder);
    file_.close();
    char name[name_bytes];
    put_name(folder, name, "");
    bool made = false;
    const int fd = open_to_append(folder.directory, name, file_owners::of_caller(folder.directory),
                                  folder.mode, status_, made);
    if (fd < 0) return false;
    file_ = owned_descriptor{fd, status_};
    return true;
  }

  /// Appends lines. Must be called directly after ready() or begin(), with signals blocked. Returns
  /// false if nothing was written.
  bool append(const char* lines, std::size_t bytes) noexcept {
    if (is_disk_short(bytes)) return false;
    if (write(file_.number(), lines, bytes) == static_cast<ssize_t>(bytes)) return true;
    // An incompletely written line is removed, because the next line would otherwise continue it.
    if (ftruncate(file_.number(), status_.st_size) != 0) file_.close();
    return false;
  }

  void close() noexcept { file_.close(); }

 private:
  static constexpr std::size_t name_bytes = 96;

  /// Whether the disk is nearly full and appending this number of bytes needs another block of it.
  bool is_disk_short(std::size_t bytes) const noexcept {
    constexpr std::uint64_t block = 4096;
    constexpr std::uint64_t left_for_logs = std::uint64_t{1} << 19;
    const auto size = static_cast<std::uint64_t>(status_.st_size);
    if ((size + bytes + block - 1) / block == (size + block - 1) / block) return false;
    struct statvfs disk {};
    if (fstatvfs(file_.number(), &disk) != 0) return false;
    // For a file system whose size is not limited, the kernel reports a size of 0 blocks.
    return disk.f_blocks != 0 && std::uint64_t{disk.f_bavail} * disk.f_frsize < left_for_logs;
  }

  static void put_name(const wait_folder& folder, char (&name)[name_bytes],
                       const char* end) noexcept {
    std::snprintf(name, sizeof(name), "%s%s%s", folder.start,
                  folder.info + sizeof(run_info_start) - 1, end);
  }

  static void make_older(const wait_folder& folder) noexcept {
    char name[name_bytes];
    char older[name_bytes];
    put_name(folder, name, "");
    put_name(folder, older, "_older");
    // NOLINTNEXTLINE(readability-suspicious-call-argument): its parameters are named old and new.
    renameat(folder.directory, name, folder.directory, older);
  }

  owned_descriptor file_;
  struct stat status_ {};  ///< status of the file before the next append
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_WAIT_FILE_HPP
