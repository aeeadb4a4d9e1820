// Renames logs that have grown too long. A renamed log is called a part; no process appends to it
// any more.
#ifndef LOTUS_STORE_LIMITS_LOG_ROLLING_HPP
#define LOTUS_STORE_LIMITS_LOG_ROLLING_HPP

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
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

/// Supplies the numbers for the names of parts: the current time in ms since the Unix epoch, or the
/// previous number plus one if that is larger. So no two parts of a log get the same name. All
/// functions are thread-safe.
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

  /// Makes the next number larger than that of an existing part, because the numbers that another
  /// process has used may be ahead of the clock. Ignores a number that is over an hour ahead.
  void begin_after(std::uint64_t part) noexcept {
    constexpr std::uint64_t max_ahead_ms = 3'600'000;
    const auto now_ms = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME)) / 1'000'000;
    if (part > now_ms + max_ahead_ms) return;
    std::uint64_t last = last_.load(std::memory_order_relaxed);
    while (last < part && !last_.compare_exchange_weak(last, part, std::memory_order_relaxed)) {
    }
  }

 private:
  std::atomic<std::uint64_t> last_{0};
};

/// Renames a thread's logs, which makes them parts, so that the thread's next lines begin new logs.
/// If the process is killed during this function, each log has either its old or its new name and
/// contains complete lines. A log that cannot be renamed continues to grow; then returns errno,
/// otherwise 0. The caller holds the producer::guard of that thread; no append is in progress.
/// @param logs  the thread's open logs; those that become parts are closed.
/// @param least  minimum size in bytes of a log to become a part; smaller logs continue.
LOTUS_DETAIL_COLD inline int roll_logs(const log_folder& folder, ring_block& ring,
                                       open_log (&logs)[log_roles], std::uint64_t least,
                                       part_numbers& numbers) noexcept {
  loader_folders loaders{folder};
  int failed = 0;
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
    int error = fstatat(in, log, &status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
    if (error == 0 && static_cast<std::uint64_t>(status.st_ino) != at.inode) continue;
    struct stat other {};
    if (fstatat(in, part, &other, AT_SYMLINK_NOFOLLOW) == 0) continue;
    if (error == 0 && renameat(in, log, in, part) != 0) error = errno;
    if (error != 0 && error != ENOENT) failed = error;  // ENOENT: somebody has deleted the log
    if (error != 0) continue;
    logs[i].file.close();
    at = {0, 0, false, at.number, at.loader};
    ring.commit(c);
  }
  return failed;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_LOG_ROLLING_HPP
