// Finds the files that dead processes have left about themselves in a run's directory.
#ifndef LOTUS_FOLDER_DEAD_FILES_HPP
#define LOTUS_FOLDER_DEAD_FILES_HPP

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lotus/base/clock.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/safe_open.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns when a file was last written to, in ns since the Unix epoch.
inline std::int64_t changed_ns(const struct stat& status) noexcept {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// The information files and the files of waits and of stacks of the processes that have ended and
/// whose records are all in the logs.
class dead_files {
 public:
  /// A time in which a running process writes to its files.
  static constexpr std::int64_t long_quiet_ns = 60'000'000'000;

  /// @param directory  descriptor of the run's directory; borrowed.
  explicit dead_files(int directory) noexcept
      : directory_{directory}, now_ns_{clock_ns(CLOCK_REALTIME)} {
    for_each_entry(directory, [this](const char* name) {
      const char* const rest = after(name, ring_file_start);
      all_visible_ = all_visible_ && (rest == nullptr || !is_dead(rest));
    });
  }

  std::int64_t now_ns() const noexcept { return now_ns_; }
  /// Time in ns after which a file of a thread or process that does not exist here is not written
  /// to any more. If there is a ring file of such a process, it may run in another container.
  std::int64_t quiet_ns() const noexcept { return all_visible_ ? 1'000'000'000 : long_quiet_ns; }

  void for_each(
      const file_owners& owners,
      function_ref<void(const char* name, const struct stat& status)> each) const noexcept {
    for_each_entry(directory_, [&](const char* name) {
      const char* rest = nullptr;
      for (const char* const start : {run_info_start, waits_file_start, stacks_file_start}) {
        if (rest == nullptr) rest = after(name, start);
      }
      if (rest == nullptr || !is_dead(rest)) return;
      char ring[300];
      std::snprintf(ring, sizeof(ring), "%s%s", ring_file_start, rest);
      struct stat status {};
      if (fstatat(directory_, ring, &status, AT_SYMLINK_NOFOLLOW) == 0 ||
          fstatat(directory_, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
          !S_ISREG(status.st_mode) || !owners.allow(status.st_uid) ||
          changed_ns(status) >= now_ns_ - quiet_ns()) {
        return;
      }
      each(name, status);
    });
  }

 private:
  /// Returns the rest of `name`, which begins with a process id; null if `name` does not begin with
  /// `start`.
  static const char* after(const char* name, const char* start) noexcept {
    const std::size_t bytes = std::strlen(start);
    return std::strncmp(name, start, bytes) == 0 ? name + bytes : nullptr;
  }
  static bool is_dead(const char* pid) noexcept {
    const long number = std::strtol(pid, nullptr, 10);
    return number > 0 && ::kill(static_cast<pid_t>(number), 0) != 0 && errno == ESRCH;
  }

  int directory_;
  std::int64_t now_ns_;
  bool all_visible_ = true;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_DEAD_FILES_HPP
