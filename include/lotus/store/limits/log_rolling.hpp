// Logs that have grown become parts.
#ifndef LOTUS_STORE_LIMITS_LOG_ROLLING_HPP
#define LOTUS_STORE_LIMITS_LOG_ROLLING_HPP

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lotus/base/clock.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/loader_folder.hpp"
#include "lotus/folder/log_appender.hpp"
#include "lotus/folder/log_parts.hpp"
#include "lotus/record/ring_layout.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The milliseconds that parts are named by: those of now, and of each part others than before, in
/// order. Where several logs became parts within one, a log that went on instead would be a part
/// too large to go alone. Thread safety: any thread.
class part_numbers {
 public:
  std::uint64_t next() noexcept {
    const auto now_ms = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME)) / 1'000'000;
    std::uint64_t last = last_.load(std::memory_order_relaxed);
    std::uint64_t next = 0;
    do {
      next = now_ms > last ? now_ms : last + 1;
    } while (!last_.compare_exchange_weak(last, next, std::memory_order_relaxed));
    return next;
  }

  /// The next number is above that of a part which is there: another process' numbers may have run
  /// ahead of the clock. What is further ahead than any run is somebody's mistake.
  void begin_behind(std::uint64_t part) noexcept {
    constexpr std::uint64_t most_ahead_ms = 3'600'000;
    const auto now_ms = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME)) / 1'000'000;
    if (part > now_ms + most_ahead_ms) return;
    std::uint64_t last = last_.load(std::memory_order_relaxed);
    while (last < part && !last_.compare_exchange_weak(last, part, std::memory_order_relaxed)) {
    }
  }

 private:
  std::atomic<std::uint64_t> last_{0};
};

/// Gives a ring's logs the names of parts, so that its next lines begin new ones. A kill amid this
/// leaves a log under one of its two names, and nothing half appended. Where that cannot be done
/// the log goes on. Caller holds the guard of the ring's producer; nothing is being appended.
/// @param logs   closed where they become parts.
/// @param least  bytes; smaller logs go on.
/// @return bytes that have become parts.
LOTUS_DETAIL_COLD inline std::uint64_t roll_logs(const log_folder& folder, ring_block& ring,
                                                 open_log (&logs)[log_roles], std::uint64_t least,
                                                 part_numbers& numbers) noexcept {
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
    put_log_name(part, sizeof(part), folder.prefix, role, folder.compact, log_number(ring, at),
                 numbers.next());
    struct stat status {};
    const bool is_it = fstatat(in, log, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                       static_cast<std::uint64_t>(status.st_ino) == at.inode;
    struct stat other {};
    const bool is_free = fstatat(in, part, &other, AT_SYMLINK_NOFOLLOW) != 0;
    if (!is_it || !is_free || renameat(in, log, in, part) != 0) continue;
    rolled += at.length;
    logs[i].file.close();
    at = {0, 0, false, at.number, at.loader};
    ring.commit(c);
  }
  return rolled;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_LOG_ROLLING_HPP
