// Recovers the records that dead processes left in their ring files.
#ifndef LOTUS_RECOVERY_RECOVERY_HPP
#define LOTUS_RECOVERY_RECOVERY_HPP

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>

#include "lotus/aggregates/recovery/ring_aggregates.hpp"
#include "lotus/base/clock.hpp"
#include "lotus/base/descriptor.hpp"
#include "lotus/base/file.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/log_appender.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/format/compact_filler.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/recovery/dead_ring.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Which files and records of a directory are recovered.
struct recovery_limits {
  const char* prefix = nullptr;          ///< only files of runs with this prefix; null: all
  std::uint32_t tid = 0;                 ///< only rings of this thread; 0: all
  std::optional<std::int64_t> until_ns;  ///< of CLOCK_MONOTONIC; the rest is left for later
  bool advance = true;  ///< recover at least a part, even if the time is already up
};

struct recovery {
  std::uint64_t files = 0;          ///< dead ring files that were read to their end
  std::uint64_t records = 0;        ///< lines appended to the logs
  std::uint64_t living = 0;         ///< ring files left alone because their processes are running
  std::uint64_t busy = 0;           ///< ring files that another process is recovering
  std::uint64_t damaged = 0;        ///< files that are not ring files
  std::uint64_t other_version = 0;  ///< ring files of another version of the library
  std::uint64_t refused = 0;        ///< ring files that could not be opened
  std::uint64_t doubted = 0;        ///< rings that were damaged completely or in part
  std::uint64_t lost = 0;           ///< records that were only in the memory of dead processes
  bool left = false;                ///< the time was up before everything was recovered
  int error = 0;                    ///< of the first log that failed; file_error_text() knows it
  char failed_log[log_name_bytes] = {};
};

/// Where a dead process's logs are, and how to create them: like its ring file.
inline log_folder folder_of(int directory, const dead_ring_file& file, const char* info) noexcept {
  const struct stat& status = file.status();
  return {directory,
          file.header().prefix,
          file_owners::only(status.st_uid),
          status.st_mode & 0666U,
          info,
          file.names(),
          file.compact(),
          &status};
}

/// Appends the records of one ring to its logs.
/// @param info  name of the information file of its process.
/// @return 0, ETIME, or an error that file_error_text() knows.
LOTUS_DETAIL_COLD inline int recover_ring(int directory, dead_ring_file& file, const char* info,
                                          ring_copy& copy, std::optional<std::int64_t> until_ns,
                                          recovery& result, drain_buffer& buffer) noexcept {
  open_log opened[log_roles];
  const log_folder folder = folder_of(directory, file, info);
  log_appender logs{folder, copy.ring(), opened, file.descriptor(), copy.file_offset()};
  logs.undo_torn();
  const name_lookup names = file.names();
  const tick_converter clock = file.clock();
  const auto drain_all = [&](auto& fill) {
    int error = 0;
    while (error == 0 && copy.fetch()) {
      const lane_heads heads{copy.ring()};
      const std::uint64_t before = heads.beyond(copy.ring().committed());
      error = drain_ring(copy.ring(), heads, fill, logs);
      result.records += before - heads.beyond(copy.ring().committed());
      if (error == 0 && copy.left() > 0 && is_over(until_ns)) error = ETIME;
    }
    return error;
  };
  int error = ENOMEM;
  if (!file.compact()) {
    line_filler fill{clock, names, buffer};
    error = drain_all(fill);
  } else if (void* const chain = map_memory(sizeof(compact_chain))) {
    compact_filler fill{clock, names, *static_cast<compact_chain*>(chain), buffer};
    error = drain_all(fill);
    munmap(chain, sizeof(compact_chain));
  }
  if (error != 0 && error != ETIME && result.error == 0) {
    result.error = error;
    std::snprintf(result.failed_log, sizeof(result.failed_log), "%s", logs.name());
  }
  close_all(opened);
  return error;
}

/// Appends a dead process's aggregates to the files that it would have written itself. Appending
/// the same aggregates twice does no harm: readers count them once. Returns 0 or an error that
/// file_error_text() knows.
inline int recover_aggregates(int directory, const dead_ring_file& file,
                              recovery& result) noexcept {
  const std::uint32_t flags = file.header().flags | aggregates_recovered_flag;
  if (file.header().flags == flags) return 0;
  const log_folder folder = folder_of(directory, file, nullptr);
  loader_folders folders{folder};
  const dead_aggregates found = read_aggregates(file, aggregate_state::whole);
  result.doubted += found.doubted();
  const int error = found.for_each_section([&](std::uint32_t loader, std::string_view section) {
    const int failed = append_aggregates(folder, folders, loader, file.header().pid, section);
    if (failed != 0 && result.error == 0) {
      put_aggregates_file_name(result.failed_log, file.header().prefix, file.header().pid);
    }
    return failed;
  });
  // Marks the file, so that the aggregates of a ring file that is kept are not appended at each
  // start.
  if (error == 0 && pwrite(file.descriptor(), &flags, sizeof(flags),
                           offsetof(ring_file_header, flags)) != sizeof(flags)) {
    return errno;
  }
  return error;
}

/// Writes to a dead process's information file how many records were only in its memory.
inline void tell_lost_records(int directory, const char* info, const file_owners& owners,
                              std::uint64_t records) noexcept {
  struct stat status {};
  const int fd = open_own(directory, info, O_WRONLY | O_APPEND, owners, status);
  if (fd < 0) return;
  char text[48];
  const int bytes =
      std::snprintf(text, sizeof(text), "lost %llu\n", static_cast<unsigned long long>(records));
  static_cast<void>(write_all(fd, text, static_cast<std::size_t>(bytes)));
  close(fd);
}

/// Appends what the rings of one dead process still hold to the logs, then deletes the ring file. A
/// file with damaged contents is kept, because these exist nowhere else.
/// May be killed at any moment and run again: the commits in the file record the progress.
/// @return false if the file is kept for that reason.
LOTUS_DETAIL_COLD inline bool recover_file(int directory, const char* name, dead_ring_file& file,
                                           const recovery_limits& limits, recovery& result,
                                           drain_buffer& buffer) noexcept {
  int error = file.read_blocks(limits.advance ? std::nullopt : limits.until_ns);
  if (error == ENOMEM && result.error == 0) result.error = error;
  char info[sizeof(run_info_start) + 256];
  std::snprintf(info, sizeof(info), "%s%s", run_info_start, name + sizeof(ring_file_start) - 1);
  bool done = error == 0;
  bool late = error == ETIME;
  const std::uint64_t doubted_before = result.doubted;
  std::uint64_t lost = 0;
  if (error == 0) {
    result.doubted += file.for_each_ring([&](ring_copy& copy) {
      lost += copy.ring().committed().in_memory;
      const bool wanted = limits.tid == 0 || copy.ring().tid.load() == limits.tid;
      if (!wanted || late) {
        if (copy.left() > 0) done = false;
        return;
      }
      error = recover_ring(directory, file, info, copy, limits.until_ns, result, buffer);
      if (error != 0) done = false;
      late = error == ETIME;
    });
  }
  if (late) result.left = true;
  if (!done) return true;
  error = recover_aggregates(directory, file, result);
  if (error != 0) {
    if (result.error == 0) result.error = error;
    return true;
  }
  result.lost += lost;
  ++result.files;
  if (lost > 0) tell_lost_records(directory, info, file_owners::only(file.status().st_uid), lost);
  if (result.doubted != doubted_before) return false;
  unlinkat(directory, name, 0);
  return true;
}

/// Deletes an empty ring file whose process died while creating it, at least a minute ago. Returns
/// 0, or why the file was refused.
inline int delete_if_unfinished(int directory, const char* name,
                                const file_owners& owners) noexcept {
  struct stat status {};
  const int fd = open_own(directory, name, O_RDONLY, owners, status);
  if (fd < 0) return fd == -ENOENT ? 0 : -fd;
  const bool abandoned =
      time(nullptr) - status.st_mtime > 60 && !file_lock_is_taken(fd, owner_lock_byte);
  if (abandoned) unlinkat(directory, name, 0);
  close(fd);
  return 0;
}

using report_left = function_ref<void(const char* name, dead_ring_file::state, int error)>;

/// Recovers the dead ring files in `directory` (borrowed).
/// @param report  called for each file that is left although its process is dead; `error` is set if
/// the file was refused.
LOTUS_DETAIL_COLD inline recovery recover_directory(int directory, const recovery_limits& limits,
                                                    report_left report) noexcept {
  using state = dead_ring_file::state;
  recovery result;
  file_owners owners = file_owners::of_caller(directory);
  bool asked = false;
  drain_buffer* buffer = nullptr;
  for_each_entry(directory, [&](const char* name) {
    if (std::strncmp(name, unfinished_ring_file_start, sizeof(unfinished_ring_file_start) - 1) ==
        0) {
      const int error = delete_if_unfinished(directory, name, owners);
      if (error != 0) report(name, state::refused, error);
      return;
    }
    if (std::strncmp(name, ring_file_start, sizeof(ring_file_start) - 1) != 0) return;
    const bool may_end = !limits.advance || result.records + result.files > 0;
    if (may_end && is_over(limits.until_ns)) {
      result.left = true;
      return;
    }
    if (!asked && belongs_to_another(directory, name, owners)) {
      owners.ask_file_system(directory);
      asked = true;
    }
    dead_ring_file file;
    const state found = file.open(directory, name, true, owners);
    if (found == state::living) ++result.living;
    if (found == state::busy) ++result.busy;
    if (found == state::damaged) ++result.damaged;
    if (found == state::other_version) ++result.other_version;
    if (found == state::refused) ++result.refused;
    if (found == state::damaged || found == state::other_version || found == state::refused) {
      report(name, found, file.error());
    }
    if (found != state::opened) return;
    if (limits.prefix != nullptr && std::strcmp(limits.prefix, file.header().prefix) != 0) return;
    if (buffer == nullptr) buffer = static_cast<drain_buffer*>(map_memory(sizeof(drain_buffer)));
    if (buffer == nullptr) {
      result.error = ENOMEM;
    } else if (!recover_file(directory, name, file, limits, result, *buffer)) {
      report(name, state::doubted, 0);
    }
  });
  if (buffer != nullptr) munmap(buffer, sizeof(drain_buffer));
  return result;
}

/// @param prefix  only files of runs with this prefix; null: all.
LOTUS_DETAIL_COLD inline recovery recover_directory(int directory, const char* prefix) noexcept {
  recovery_limits limits;
  limits.prefix = prefix;
  return recover_directory(directory, limits, [](const char*, dead_ring_file::state, int) {});
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_RECOVERY_HPP
