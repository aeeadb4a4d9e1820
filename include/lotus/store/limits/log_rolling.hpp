// Logs that have grown become parts.
#ifndef LOTUS_STORE_LIMITS_LOG_ROLLING_HPP
#define LOTUS_STORE_LIMITS_LOG_ROLLING_HPP

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

#include "lotus/base/clock.hpp"
#include "lotus/config.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/recovery/loader_folder.hpp"
#include "lotus/recovery/log_appender.hpp"
#include "lotus/recovery/log_parts.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The name of a part of now, or of the first ms behind it that no part has: where several become
/// parts within one, a log that went on instead would be a part too large to go alone. False where
/// there is none.
inline bool put_free_part(int in, const log_folder& folder, log_role role, std::uint32_t number,
                          char (&part)[log_name_bytes]) noexcept {
  constexpr std::uint64_t most_tries = 100;
  const auto now_ms = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME)) / 1'000'000;
  for (std::uint64_t ms = now_ms; ms < now_ms + most_tries; ++ms) {
    put_log_name(part, sizeof(part), folder.prefix, role, folder.compact, number, ms);
    struct stat other {};
    if (fstatat(in, part, &other, AT_SYMLINK_NOFOLLOW) != 0) return true;
  }
  return false;
}

/// Gives a ring's logs the names of parts, so that its next lines begin new ones. A kill amid this
/// leaves a log under one of its two names, and nothing half appended. Where that cannot be done
/// the log goes on. Caller holds the guard of the ring's producer; nothing is being appended.
/// @param logs   closed where they become parts.
/// @param least  bytes; smaller logs go on.
/// @return bytes that have become parts.
inline std::uint64_t roll_logs(const log_folder& folder, ring_block& ring,
                               open_log (&logs)[log_roles], std::uint64_t least) noexcept {
  std::uint64_t rolled = 0;
  loader_folders loaders{folder};
  for (std::size_t i = 0; i < log_roles; ++i) {
    commit_point c = ring.committed();
    log_position& at = c.logs[i];
    if (at.inode == 0 || at.appending || at.length == 0 || at.length < least) continue;
    const int in = loaders.of(at.loader);
    if (in < 0) continue;
    const auto role = static_cast<log_role>(i);
    char log[log_name_bytes];
    char part[log_name_bytes];
    put_log_name(log, sizeof(log), folder.prefix, role, folder.compact, log_number(ring, at));
    struct stat status {};
    const bool is_it = fstatat(in, log, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                       static_cast<std::uint64_t>(status.st_ino) == at.inode;
    if (!is_it || !put_free_part(in, folder, role, log_number(ring, at), part) ||
        renameat(in, log, in, part) != 0) {
      continue;
    }
    rolled += at.length;
    logs[i].file.close();
    at = {0, 0, false, at.number, at.loader};
    ring.commit(c);
  }
  return rolled;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_LOG_ROLLING_HPP
