// Creates snapshots: copies of a run's directory at one moment.
#ifndef LOTUS_RECOVERY_SNAPSHOT_FOLDER_HPP
#define LOTUS_RECOVERY_SNAPSHOT_FOLDER_HPP

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lotus/aggregates/aggregate_text.hpp"
#include "lotus/aggregates/recovery/ring_aggregates.hpp"
#include "lotus/base/clock.hpp"
#include "lotus/base/descriptor.hpp"
#include "lotus/base/file.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/loader_folder.hpp"
#include "lotus/folder/run_logs.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/folder/snapshot_place.hpp"
#include "lotus/recovery/dead_ring.hpp"
#include "lotus/recovery/recovery.hpp"
#include "lotus/recovery/whole_end.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Function with which a process adds its own current aggregates to a snapshot of its run. If a
/// process passes no function, its aggregates are copied from its ring file.
struct own_aggregates {
  void* of = nullptr;
  /// Appends the current aggregates to files in `folder`. Returns 0 or an error that
  /// file_error_text() can describe.
  int (*append)(void* of, int folder) noexcept = nullptr;
};

/// Appends the aggregates in a ring file to the aggregates files in the folder `to`, even if the
/// ring file's process is running. If threads of that process finish calls meanwhile, some sums may
/// contain a call that other sums lack. A ring file that cannot be read within 50 ms is skipped.
/// @param from  descriptor of the ring file's directory; `from` and `to` are borrowed.
/// @param prefix  only a ring file whose logs have this prefix is used.
/// @return 0, ENOMEM, or an error of the files in `to` that file_error_text() can describe.
LOTUS_DETAIL_COLD inline int copy_ring_aggregates(int from, const char* name, const char* prefix,
                                                  const file_owners& owners, int to) noexcept {
  constexpr std::int64_t max_ns = 50'000'000;
  dead_ring_file file;
  if (file.open_any(from, name, owners) != dead_ring_file::state::opened) return 0;
  if (std::strcmp(file.header().prefix, prefix) != 0) return 0;
  const int error = file.read_blocks(clock_ns(CLOCK_MONOTONIC) + max_ns);
  if (error != 0) return error == ETIME ? 0 : error;
  const dead_aggregates found = read_aggregates(file, aggregate_state::moving);
  const log_folder run = folder_of(to, file, nullptr);
  loader_folders folders{run};
  return found.for_each_section([&](std::uint32_t loader, std::string_view section) {
    return append_aggregates(run, folders, loader, file.header().pid, section);
  });
}

/// Creates a snapshot of a run in a new folder, and deletes the folder if the snapshot cannot be
/// completed.
class snapshot_folder {
 public:
  static constexpr std::size_t name_bytes = 352;

  /// @param from  descriptor of the run's directory; all arguments are borrowed.
  /// @param mode   permissions of new files, before the umask applies.
  snapshot_folder(int from, const log_location& run, const file_owners& owners,
                  mode_t mode) noexcept
      : from_{from}, run_{run}, owners_{owners}, mode_{mode}, place_{from, run} {}

  /// Creates the snapshot. Returns 0, or an error that file_error_text() can describe; then no
  /// snapshot exists.
  /// @param info  name of the information file to which the line "snapshot" is added: that of the
  /// calling process if `own` is given.
  LOTUS_DETAIL_COLD int make(std::string_view reason, const char* info,
                             const own_aggregates& own = {}) noexcept {
    if (place_.error() != 0) return place_.error();
    remove_dead();
    const std::int64_t now_ns = clock_ns(CLOCK_REALTIME);
    int error = EEXIST;
    int folder = -1;
    for (unsigned attempt = 0; error == EEXIST && attempt < 100; ++attempt) {
      place_.put_name(name_, sizeof(name_), reason, now_ns, attempt);
      struct stat status {};
      if (fstatat(place_.parent(), name_, &status, AT_SYMLINK_NOFOLLOW) == 0) continue;
      std::snprintf(unfinished_, sizeof(unfinished_), "%s%s", name_, unfinished_end.data());
      error = mkdirat(place_.parent(), unfinished_, folder_mode()) == 0 ? 0 : errno;
      if (error == 0) error = open_unfinished(folder);
    }
    if (error != 0) return error;
    error = fill(folder, info, own, now_ns);
    if (error == 0 && renameat(place_.parent(), unfinished_, place_.parent(), name_) != 0) {
      error = errno;
    }
    if (error != 0) remove_folder(unfinished_);
    close(folder);  // also releases the folder's lock
    return error;
  }

  /// Deletes the oldest snapshots of the run until the total size is at most `max_bytes`, but keeps
  /// the newest in any case.
  void keep_within(std::uint64_t max_bytes) noexcept {
    for (;;) {
      char oldest[256] = "";
      std::uint64_t bytes = 0;
      unsigned count = 0;
      for_each_entry(place_.parent(), [&](const char* name) {
        if (!place_.is_one(name)) return;
        ++count;
        bytes += bytes_of(name);
        if (oldest[0] == '\0' || std::strcmp(name, oldest) < 0) {
          std::snprintf(oldest, sizeof(oldest), "%s", name);
        }
      });
      if (count < 2 || bytes <= max_bytes || !remove_folder(oldest)) return;
    }
  }

  /// The snapshot's name, without the path.
  const char* name() const noexcept { return name_; }

 private:
  static constexpr std::string_view unfinished_end = ".unfinished";

  /// Opens the new folder and locks it until the snapshot is complete. If the process is killed,
  /// the kernel releases the lock, so that the next snapshot can recognize this one as unfinished
  /// and remove it. Returns EEXIST if another process is removing or has removed the folder.
  int open_unfinished(int& folder) const noexcept {
    folder = open_at_high_fd(place_.parent(), unfinished_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (folder < 0) return errno == ENOENT ? EEXIST : errno;
    struct stat opened {};
    struct stat named {};
    // If the file system has no locks, the folder is used without one: remove_dead() cannot lock it
    // either, and does not remove it.
    const bool locked = flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && fstat(folder, &opened) == 0 &&
        fstatat(place_.parent(), unfinished_, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        opened.st_ino == named.st_ino) {
      return 0;
    }
    close(folder);
    folder = -1;
    return EEXIST;
  }

  /// Deletes unfinished snapshots of this run whose processes were killed.
  void remove_dead() const noexcept {
    for_each_entry(place_.parent(), [&](const char* name) {
      const std::string_view text = name;
      const bool unfinished = place_.is_one(name) && text.size() > unfinished_end.size() &&
                              text.substr(text.size() - unfinished_end.size()) == unfinished_end;
      const int folder = unfinished ? open_one(name) : -1;
      if (folder < 0) return;
      if (flock(folder, LOCK_EX | LOCK_NB) == 0) remove_folder(name);
      close(folder);
    });
  }

  /// Function to call for each file and subfolder of a snapshot.
  using each_file = function_ref<void(int folder, const char* name, const struct stat& status)>;
  static void for_each_file(int folder, unsigned depth, each_file each) noexcept {
    for_each_entry(folder, [&](const char* name) {
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) return;
      struct stat status {};
      if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
      if (S_ISDIR(status.st_mode) && depth > 0) {
        const int inner =
            open_at_high_fd(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
        if (inner < 0) return;
        for_each_file(inner, depth - 1, each);
        close(inner);
      }
      each(folder, name, status);
    });
  }

  int open_one(const char* name) const noexcept {
    const int folder =
        open_at_high_fd(place_.parent(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    struct stat status {};
    if (folder < 0 || (fstat(folder, &status) == 0 && owners_.allow(status.st_uid))) return folder;
    close(folder);
    return -1;
  }

  std::uint64_t bytes_of(const char* name) const noexcept {
    std::uint64_t bytes = 0;
    const int folder = open_one(name);
    if (folder < 0) return 0;
    for_each_file(folder, 1, [&](int, const char*, const struct stat& status) {
      if (S_ISREG(status.st_mode)) bytes += static_cast<std::uint64_t>(status.st_size);
    });
    close(folder);
    return bytes;
  }

  LOTUS_DETAIL_COLD bool remove_folder(const char* name) const noexcept {
    const int folder = open_one(name);
    if (folder < 0) return false;
    for_each_file(folder, 1, [](int in, const char* file, const struct stat& status) {
      unlinkat(in, file, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
    });
    close(folder);
    return unlinkat(place_.parent(), name, AT_REMOVEDIR) == 0;
  }

  LOTUS_DETAIL_COLD int fill(int folder, const char* info, const own_aggregates& own,
                             std::int64_t now_ns) noexcept {
    // The line "snapshot" in the information file is written first. Without it, a snapshot inside
    // the run's directory would look like the folder of a loader.
    int error = tell(folder, info, now_ns);
    // Parts are copied before the logs that still grow. So a log that becomes a part meanwhile is
    // not copied twice.
    for (const bool parts : {true, false}) {
      for_each_log(from_, run_.prefix, owners_, [&](const run_log& log) {
        if (error == 0 && (log.parsed.part != 0) == parts) error = add(folder, log);
      });
    }
    if (error == 0) error = add_aggregates(folder, own.append == nullptr ? "" : info);
    if (error == 0 && own.append != nullptr) error = own.append(own.of, folder);
    for_each_entry(from_, [&](const char* name) {
      if (error != 0) return;
      if (begins_with(name, run_info_start) || begins_with(name, waits_file_start)) {
        error = append_copy(from_, folder, name, mode_);
      } else if (begins_with(name, stacks_file_start)) {
        error = append_copy(from_, folder, name, mode_ & 0600U);
      }
    });
    return error;
  }

  int tell(int folder, const char* info, std::int64_t now_ns) const noexcept {
    struct stat status {};
    bool made = false;
    const int fd = open_to_append(folder, info, owners_, mode_, status, made);
    if (fd < 0) return -fd;
    char line[64];
    const int bytes =
        std::snprintf(line, sizeof(line), "snapshot %lld\n", static_cast<long long>(now_ns));
    const int error = write_all(fd, line, static_cast<std::size_t>(bytes));
    close(fd);
    return error;
  }

  static bool begins_with(const char* name, const char* start) noexcept {
    return std::strncmp(name, start, std::strlen(start)) == 0;
  }

  /// Copies the aggregates of all processes of the run, first those in ring files, then those in
  /// aggregates files. So aggregates that a process moves from its ring file to its aggregates file
  /// meanwhile may be copied twice, but are never missing. Readers count sections of the same name
  /// only once.
  /// @param own_info  name of the calling process's information file if the process adds its own
  /// aggregates (see own_aggregates), otherwise "".
  int add_aggregates(int folder, const char* own_info) const noexcept {
    int error = 0;
    for_each_entry(from_, [&](const char* name) {
      if (error != 0 || !begins_with(name, ring_file_start)) return;
      const char* const whose = name + sizeof(ring_file_start) - 1;
      const bool own = begins_with(own_info, run_info_start) &&
                       std::strcmp(own_info + sizeof(run_info_start) - 1, whose) == 0;
      if (!own) error = copy_ring_aggregates(from_, name, run_.prefix, owners_, folder);
    });
    for_each_run_folder(from_, owners_, [&](int in, const char* loader) {
      for_each_entry(in, [&](const char* name) {
        if (error != 0 || !begins_with(name, aggregates_file_start)) return;
        int to = 0;
        error = open_folder(folder, loader, to);
        if (error == 0) error = append_copy(in, to, name, mode_);
        if (error == 0 && to != folder) close(to);
      });
    });
    return error;
  }

  /// Opens the loader's folder in the snapshot, and creates it if it is missing.
  /// @param to  set to the descriptor of that folder, or to `folder` itself if `loader` is "".
  LOTUS_DETAIL_COLD int open_folder(int folder, const char* loader, int& to) const noexcept {
    to = folder;
    if (*loader == '\0') return 0;
    if (mkdirat(folder, loader, folder_mode()) != 0 && errno != EEXIST) return errno;
    to = open_at_high_fd(folder, loader, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    return to < 0 ? errno : 0;
  }

  /// Adds a log to the snapshot. A part never changes, so a hard link to it is created if possible.
  /// Otherwise all complete lines or blocks of the log are copied.
  int add(int folder, const run_log& log) const noexcept {
    int to = folder;
    int error = open_folder(folder, log.loader, to);
    if (error != 0) return error;
    if (log.parsed.part == 0 || linkat(log.folder, log.name, to, log.name, 0) != 0) {
      struct stat status {};
      const int fd = open_regular(log.folder, log.name, O_RDONLY, status);
      // If the log cannot be opened, it has become a part or was deleted in the meantime, which is
      // no error.
      error = fd < 0 ? 0 : copy(fd, whole_end(fd, log.parsed.compact, status), to, log.name);
      if (fd >= 0) close(fd);
    }
    if (to != folder) close(to);
    return error;
  }

  /// Permissions of folders: users who may read the files in a folder may also enter the folder.
  mode_t folder_mode() const noexcept { return mode_ | (mode_ & 0444U) >> 2U | 0700U; }

  /// Appends a file in the folder `from` to the file of the same name in `folder`. Does nothing if
  /// the file in `from` cannot be read.
  LOTUS_DETAIL_COLD int append_copy(int from, int folder, const char* name,
                                    mode_t mode) const noexcept {
    struct stat status {};
    const int fd = open_regular(from, name, O_RDONLY, status);
    if (fd < 0) return 0;
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    bool made = false;
    const int to = open_to_append(folder, name, owners_, mode, status, made);
    const int error = to < 0 ? -to : copy(fd, bytes, to);
    close(fd);
    return error;
  }

  int copy(int fd, std::uint64_t bytes, int folder, const char* name) const noexcept {
    struct stat status {};
    const int to = open_regular(folder, name, O_WRONLY | O_CREAT | O_EXCL, status, mode_);
    return to < 0 ? -to : copy(fd, bytes, to);
  }

  /// Copies the first `bytes` bytes of the file `fd` to the file `to`, and closes the descriptor
  /// `to`. Returns 0 or errno.
  static int copy(int fd, std::uint64_t bytes, int to) noexcept {
    static_assert(copy_bytes % 4096 == 0);
    const mapped<char[copy_bytes]> memory;
    if (!memory) {
      close(to);
      return ENOMEM;
    }
    char(&buffer)[copy_bytes] = *memory;
    int error = 0;
    for (std::uint64_t done = 0; error == 0 && done < bytes;) {
      const std::uint64_t left = bytes - done;
      const ssize_t n = pread(fd, buffer, left < sizeof(buffer) ? left : sizeof(buffer),
                              static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        error = n < 0 ? errno : 0;
        break;
      }
      error = write_all(to, buffer, static_cast<std::size_t>(n));
      done += static_cast<std::uint64_t>(n);
    }
    close(to);
    return error;
  }

  static constexpr std::size_t copy_bytes = std::size_t{64} << 10;

  int from_;
  const log_location& run_;
  const file_owners& owners_;
  mode_t mode_;
  snapshot_place place_;
  char name_[name_bytes] = {};
  char unfinished_[name_bytes + 16] = {};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_SNAPSHOT_FOLDER_HPP
