// Appends records that dead processes left in their ring files to the logs (recovery).
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

/// Selects which ring files and records in a directory are recovered, and how long recovery may
/// take.
struct recovery_limits {
  const char* prefix = nullptr;  ///< only ring files whose logs have this prefix; null: all files
  std::uint32_t tid = 0;         ///< only the rings of the thread with this id; 0: all rings
  /// CLOCK_MONOTONIC time at which to stop; none: never.
  std::optional<std::int64_t> until_ns;
  /// whether to recover at least some records even if until_ns has passed already
  bool advance = true;
};

struct recovery {
  std::uint64_t files = 0;          ///< ring files of dead processes that were recovered completely
  std::uint64_t records = 0;        ///< records appended to the logs
  std::uint64_t running = 0;        ///< ring files whose processes are running
  std::uint64_t busy = 0;           ///< ring files that another process is recovering
  std::uint64_t damaged = 0;        ///< files whose header is not that of a ring file
  std::uint64_t other_version = 0;  ///< ring files of another version of the library
  std::uint64_t refused = 0;        ///< ring files that could not be opened
  std::uint64_t doubted = 0;        ///< rings of which at least a part is damaged
  std::uint64_t lost = 0;  ///< records lost because they were only in a dead process's memory
  bool left = false;       ///< whether until_ns passed before everything was recovered
  /// the first error of an append (to the log failed_log) or of an allocation; 0: none
  int error = 0;
  char failed_log[log_name_bytes] = {};
};

/// Returns the folder of a dead process's logs, and the properties of new logs there. New logs get
/// the owner and permissions of the process's ring file.
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

/// Appends the records of one ring of a dead process to the logs of the ring's thread.
/// @param info  name of the dead process's information file.
/// @return 0; ETIME if the time limit was reached; or an error that file_error_text() can describe.
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

/// Appends a dead process's aggregates to the files to which the process would have written them.
/// Aggregates may be appended twice without harm, because readers count them once. Returns 0 or an
/// error that file_error_text() can describe.
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
  // Marks the ring file, so that if it is kept, later recoveries do not append its aggregates
  // again.
  if (error == 0 && pwrite(file.descriptor(), &flags, sizeof(flags),
                           offsetof(ring_file_header, flags)) != sizeof(flags)) {
    return errno;
  }
  return error;
}

/// Adds to a dead process's information file how many records were lost because they were only in
/// the process's memory.
inline void report_lost_records(int directory, const char* info, const file_owners& owners,
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

/// Appends the records in the rings of one dead process to the logs, then deletes the ring file. A
/// file with damaged contents is kept, because it is the only copy of them. If this process is
/// killed meanwhile, a later recovery continues from the commits in the ring file.
/// @return false if the file is kept because of damaged contents.
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
  if (lost > 0) report_lost_records(directory, info, file_owners::only(file.status().st_uid), lost);
  if (result.doubted != doubted_before) return false;
  unlinkat(directory, name, 0);
  return true;
}

/// Deletes an unfinished ring file that is older than a minute, if its process has died. Returns 0,
/// or an error if the file could not be opened.
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

/// Recovers the ring files of dead processes in `directory` (borrowed).
/// @param report  called for each ring file that is kept although its process is dead. Its argument
/// `error` is the reason if the state is `refused`, otherwise 0.
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
    if (found == state::running) ++result.running;
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

/// Recovers all records in the ring files of dead processes in `directory`, without a time limit
/// and without calling a report function.
/// @param prefix  only ring files whose logs have this prefix; null: all files.
LOTUS_DETAIL_COLD inline recovery recover_directory(int directory, const char* prefix) noexcept {
  recovery_limits limits;
  limits.prefix = prefix;
  return recover_directory(directory, limits, [](const char*, dead_ring_file::state, int) {});
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_RECOVERY_HPP
