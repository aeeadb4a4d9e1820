// Finds all logs in a run's directory, no matter which process writes them.
#ifndef LOTUS_FOLDER_RUN_LOGS_HPP
#define LOTUS_FOLDER_RUN_LOGS_HPP

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "lotus/base/descriptor.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/log_parts.hpp"
#include "lotus/folder/safe_open.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A log of a run: a regular file that belongs to one of the allowed owners. The pointers and the
/// descriptor are valid only while the callback runs that receives this object.
struct run_log {
  int folder;  ///< descriptor of the folder that contains the log
  /// Name of the loader in whose folder the log is; empty if the log is in the run's directory.
  const char* loader;
  const char* name;
  struct stat status;
  log_name parsed;
};

/// Calls `each(run_log)` for the logs of one folder.
inline void for_each_log_in(int folder, const char* loader, const char* prefix,
                            const file_owners& owners,
                            function_ref<void(const run_log&)> each) noexcept {
  for_each_entry(folder, [&](const char* name) {
    run_log log{folder, loader, name, {}, {}};
    if (!log.parsed.parse(name, prefix)) return;
    if (fstatat(folder, name, &log.status, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (S_ISREG(log.status.st_mode) && owners.allow(log.status.st_uid)) each(log);
  });
}

/// Whether a folder is another run's directory rather than a loader's folder.
inline bool is_other_run(int folder) noexcept {
  bool found = false;
  for_each_entry(folder, [&](const char* name) {
    found = found || std::strncmp(name, run_info_start, sizeof(run_info_start) - 1) == 0;
  });
  return found;
}

/// Calls `each(folder, loader)` for the run's directory (a descriptor), with an empty loader name,
/// and for the folder of each of its loaders.
inline void for_each_run_folder(int directory, const file_owners& owners,
                                function_ref<void(int folder, const char* loader)> each) noexcept {
  each(directory, "");
  for_each_entry(directory, [&](const char* name) {
    struct stat status {};
    if (*name == '.' || fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(status.st_mode) || !owners.allow(status.st_uid)) {
      return;
    }
    const int folder =
        open_at_high_fd(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    if (folder < 0) return;
    if (!is_other_run(folder)) each(folder, name);
    close(folder);
  });
}

/// Calls `each(run_log)` for all logs with this prefix in `directory` (a descriptor) and in its
/// loaders' folders.
inline void for_each_log(int directory, const char* prefix, const file_owners& owners,
                         function_ref<void(const run_log&)> each) noexcept {
  for_each_run_folder(directory, owners, [&](int folder, const char* loader) {
    for_each_log_in(folder, loader, prefix, owners, each);
  });
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_RUN_LOGS_HPP
