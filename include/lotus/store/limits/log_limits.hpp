// Keeps the logs of a run within limits of size and age by deleting the oldest parts of the logs.
#ifndef LOTUS_STORE_LIMITS_LOG_LIMITS_HPP
#define LOTUS_STORE_LIMITS_LOG_LIMITS_HPP

#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "lotus/base/clock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/dead_files.hpp"
#include "lotus/folder/loader_folder.hpp"
#include "lotus/folder/log_claims.hpp"
#include "lotus/folder/log_parts.hpp"
#include "lotus/folder/run_logs.hpp"
#include "lotus/folder/safe_open.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Number, size and last write of the logs that were deleted because they exceeded the limits of
/// size or age.
struct deleted_logs {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::int64_t until_ns = 0;  ///< last write to a deleted log, in ns since the Unix epoch
  int error = 0;              ///< errno of a log that could not be deleted
};

/// Size in bytes of the blocks in which most file systems allocate space.
inline constexpr std::uint64_t disk_block_bytes = 4096;

/// Limits the total size and the age of all logs in a directory, including those of other
/// processes, running or dead.
///
/// Only logs to which no process appends are deleted: parts (logs that were renamed when they had
/// grown too long) and logs of dead threads. With the logs of a dead process, its files about
/// itself and its waits are deleted. Call begin() while no other function is running, and all other
/// functions on any thread. Trivially destructible.
class log_limits {
 public:
  /// @param max_bytes  maximum total size of the logs in bytes; 0: unlimited.
  /// @param max_age_ns  maximum age of a log in ns; 0: unlimited.
  void begin(std::uint64_t max_bytes, std::int64_t max_age_ns) noexcept {
    max_bytes_ = max_bytes;
    max_age_ns_ = max_age_ns;
    checked_ns_.store(0, std::memory_order_relaxed);
    grown_.store(0, std::memory_order_relaxed);
    part_bytes_.store(share_of(16), std::memory_order_relaxed);
    crowded_.store(false, std::memory_order_relaxed);
    now_checking_.store(false, std::memory_order_relaxed);
  }

  bool any() const noexcept { return max_bytes_ != 0 || max_age_ns_ != 0; }
  /// Size in bytes at which a log becomes a part.
  std::uint64_t part_bytes() const noexcept { return part_bytes_.load(std::memory_order_relaxed); }
  /// Time in ns after which a log becomes a part, whatever its size; 0: never.
  std::int64_t part_ns() const noexcept { return max_age_ns_ / 8; }

  void after_fork_in_child() noexcept { now_checking_.store(false, std::memory_order_relaxed); }

  /// Adds to the number of bytes, in blocks of the disk, by which logs have grown since keep() last
  /// checked the directory.
  void count(std::uint64_t bytes) noexcept { grown_.fetch_add(bytes, std::memory_order_relaxed); }

  /// Whether the logs still exceeded the size limit after the last check had deleted all parts.
  /// Then logs of dead threads should become parts, and logs_rolled() be called.
  bool crowded() const noexcept { return crowded_.load(std::memory_order_relaxed); }
  /// Makes the next keep() check the directory, because there are new parts.
  void logs_rolled() noexcept { checked_ns_.store(0, std::memory_order_relaxed); }

  /// Whether logs have grown so much that keep() should be called immediately. If the logs are
  /// crowded, that would not help, because all parts are deleted already.
  bool overdue() const noexcept {
    return max_bytes_ != 0 && !crowded() && grown_.load(std::memory_order_relaxed) >= share_of(8);
  }

  /// Deletes the logs that exceed the limits. Checks the directory at most once a second, or more
  /// often if logs grow fast. Returns false if the directory was not checked.
  LOTUS_DETAIL_COLD bool keep(int directory, const char* prefix, const file_owners& owners,
                              deleted_logs& forgotten) noexcept {
    if (!any() || directory < 0) return false;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    const bool due = now_ns - checked_ns_.load(std::memory_order_relaxed) >= 1'000'000'000 ||
                     (max_bytes_ != 0 && grown_.load(std::memory_order_relaxed) >= share_of(16));
    if (!due || !begin_check()) return false;
    checked_ns_.store(now_ns, std::memory_order_relaxed);
    grown_.store(0, std::memory_order_relaxed);
    while (check(directory, prefix, owners, forgotten)) {
    }
    now_checking_.store(false, std::memory_order_release);
    return true;
  }

 private:
  /// Returns whether the caller may check the directory, which only one thread may do at a time. If
  /// another thread is checking the directory and overdue() is true, first waits for that thread,
  /// but for at most 0.1 s: the caller may be a signal handler that interrupted the checking
  /// thread, which then cannot continue.
  bool begin_check() noexcept {
    constexpr timespec pause{0, 100'000};
    for (int tries = 0; now_checking_.exchange(true, std::memory_order_acquire); ++tries) {
      if (!overdue() || tries == 1000) return false;
      nanosleep(&pause, nullptr);
    }
    return true;
  }

  /// The size of a log and when it was last written to.
  struct candidate {
    std::int64_t written_ns;
    std::uint64_t on_disk;
  };
  static constexpr std::size_t at_once = 512;
  static constexpr std::uint64_t least_share = std::uint64_t{16} << 10;

  std::uint64_t share_of(std::uint64_t parts) const noexcept {
    if (max_bytes_ == 0) return UINT64_MAX;
    return max_bytes_ / parts > least_share ? max_bytes_ / parts : least_share;
  }

  /// Returns when the log's last lines were appended, in ns since the Unix epoch. For a part, reads
  /// this time from the part's name, because the file system's time may come from another machine's
  /// clock.
  static std::int64_t written_ns(const run_log& log) noexcept {
    if (log.parsed.part != 0) return (static_cast<std::int64_t>(log.parsed.part) + 1) * 1'000'000;
    return changed_ns(log.status);
  }

  /// Whether no process will append to the log any more.
  static bool is_over(const run_log& log, const dead_files& dead) noexcept {
    if (log.parsed.part != 0) return true;
    if (log.parsed.number > largest_thread_id) {
      return written_ns(log) < dead.now_ns() - dead_files::long_quiet_ns;
    }
    return written_ns(log) < dead.now_ns() - dead.quiet_ns() && is_of_dead_process(log);
  }
  /// Whether the log's thread is dead. A thread in another container also counts as dead, because
  /// this process cannot see it.
  static bool is_of_dead_process(const run_log& log) noexcept {
    // A log with a number above all thread ids belongs to several threads, whose ids are not known
    // here.
    if (log.parsed.number > largest_thread_id) return false;
    return ::kill(static_cast<pid_t>(log.parsed.number), 0) != 0 && errno == ESRCH;
  }

  /// Returns how many bytes a file occupies on the disk: for a small file more than its size.
  static std::uint64_t bytes_on_disk(const struct stat& status) noexcept {
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    const auto in_blocks = static_cast<std::uint64_t>(status.st_blocks) * 512;
    return bytes > in_blocks ? bytes : in_blocks;
  }

  /// Deletes the oldest logs until the limits are met, but at most about `at_once` of them. Returns
  /// whether there may be more to delete.
  LOTUS_DETAIL_COLD bool check(int directory, const char* prefix, const file_owners& owners,
                               deleted_logs& forgotten) noexcept {
    const dead_files dead{directory};
    const mapped<candidate[at_once]> memory;
    if (!memory) return false;
    candidate(&oldest)[at_once] = *memory;
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t growing = 0;
    for_each_log(directory, prefix, owners, [&](const run_log& log) {
      bytes += bytes_on_disk(log.status);
      if (is_over(log, dead)) {
        put_in_order({written_ns(log), bytes_on_disk(log.status)}, oldest, count);
      } else {
        ++growing;
      }
    });
    dead.for_each(owners, [&](const char*, const struct stat& status) {
      bytes += bytes_on_disk(status);
      put_in_order({changed_ns(status), bytes_on_disk(status)}, oldest, count);
    });
    // An eighth of the limit remains for logs that grow until the next check.
    const std::uint64_t wanted = max_bytes_ == 0 ? UINT64_MAX : max_bytes_ - max_bytes_ / 8;
    std::uint64_t left = bytes;
    std::size_t last = 0;
    for (; last < count; ++last) {
      const bool too_old =
          max_age_ns_ != 0 && oldest[last].written_ns < dead.now_ns() - max_age_ns_;
      if (!too_old && left <= wanted) break;
      left -= oldest[last].on_disk < left ? oldest[last].on_disk : left;
    }
    const bool deleted =
        last > 0 && remove(directory, prefix, owners, dead, oldest[last - 1].written_ns, forgotten);
    if (deleted && last == at_once) return true;
    // In small parts, less of the limit is taken by logs that cannot be deleted.
    const bool crowded = left > wanted;
    const bool small = crowded || (growing != 0 && max_bytes_ / growing < least_share);
    part_bytes_.store(small && max_bytes_ != 0 ? disk_block_bytes : share_of(8 * (growing + 1)),
                      std::memory_order_relaxed);
    crowded_.store(crowded, std::memory_order_relaxed);
    return false;
  }

  static void put_in_order(const candidate& log, candidate (&oldest)[at_once],
                           std::size_t& count) noexcept {
    std::size_t at = count;
    while (at > 0 && oldest[at - 1].written_ns > log.written_ns) --at;
    if (at == at_once) return;
    if (count < at_once) ++count;
    for (std::size_t i = count - 1; i > at; --i) oldest[i] = oldest[i - 1];
    oldest[at] = log;
  }

  /// Deletes the logs that were last written to at `until_ns` or earlier. Returns whether there
  /// were any.
  static bool remove(int directory, const char* prefix, const file_owners& owners,
                     const dead_files& dead, std::int64_t until_ns,
                     deleted_logs& forgotten) noexcept {
    bool any = false;
    for_each_log(directory, prefix, owners, [&](const run_log& log) {
      const std::int64_t ns = written_ns(log);
      if (ns > until_ns || !is_over(log, dead)) return;
      if (unlinkat(log.folder, log.name, 0) != 0) {
        if (errno != ENOENT) forgotten.error = errno;
        return;
      }
      any = true;
      ++forgotten.files;
      forgotten.bytes += static_cast<std::uint64_t>(log.status.st_size);
      if (forgotten.until_ns < ns) forgotten.until_ns = ns;
    });
    dead.for_each(owners, [&](const char* name, const struct stat& status) {
      any = (changed_ns(status) <= until_ns && unlinkat(directory, name, 0) == 0) || any;
    });
    return any;
  }

  std::uint64_t max_bytes_ = 0;
  std::int64_t max_age_ns_ = 0;
  std::atomic<std::int64_t> checked_ns_{0};
  std::atomic<std::uint64_t> grown_{0};
  // Size in bytes at which a log becomes a part. UINT64_MAX means unlimited, so that each append
  // needs only one comparison.
  std::atomic<std::uint64_t> part_bytes_{UINT64_MAX};
  std::atomic<bool> crowded_{false};
  std::atomic<bool> now_checking_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_LOG_LIMITS_HPP
