// Decides when a process's logs become parts, and when parts are deleted (see log_limits.hpp).
#ifndef LOTUS_STORE_LIMITS_LOG_RETENTION_HPP
#define LOTUS_STORE_LIMITS_LOG_RETENTION_HPP

#include <atomic>
#include <cstdint>

#include "lotus/base/clock.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/loader_folder.hpp"
#include "lotus/folder/run_logs.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/options.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/limits/log_limits.hpp"
#include "lotus/store/limits/log_rolling.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Applies options::keep_bytes and keep_ms. Call begin() while no other
/// function is running, after_drain() while producer::guard is held, and all other functions on any
/// thread. Trivially destructible.
class log_retention {
 public:
  LOTUS_DETAIL_COLD void begin(const options& chosen) noexcept {
    limits_.begin(chosen.keep_bytes, std::int64_t{chosen.keep_ms} * 1'000'000);
    rolled_ns_.store(clock_ns(CLOCK_MONOTONIC_COARSE), std::memory_order_relaxed);
  }

  /// Reads the numbers of the existing parts, so that new parts get larger numbers.
  void begin_after_parts(int directory, const char* prefix, const file_owners& owners) noexcept {
    if (!any()) return;
    for_each_log(directory, prefix, owners,
                 [this](const run_log& log) { numbers_.begin_after(log.parsed.part); });
  }

  bool any() const noexcept { return limits_.any(); }

  /// Makes each log become a part when its thread is drained next, whatever the log's size.
  void roll_all() noexcept { rolls_.fetch_add(1, std::memory_order_relaxed); }
  /// Whether roll_all() was called since the thread's logs last became parts.
  bool is_due(const producer& p) const noexcept {
    return p.rolls != rolls_.load(std::memory_order_relaxed);
  }

  /// Makes the thread's logs parts if they are due. Returns 0, or errno if a log cannot be renamed.
  int after_drain(const log_folder& folder, producer& p) noexcept {
    const std::uint64_t blocks = limits_.any() ? bytes_in_blocks(*p.ring) : 0;
    if (blocks > p.log_blocks) limits_.count(blocks - p.log_blocks);
    p.log_blocks = blocks;
    const std::uint32_t rolls = rolls_.load(std::memory_order_relaxed);
    const bool due = p.rolls != rolls;
    p.rolls = rolls;
    if (due) return roll(folder, p);
    const bool limited = limits_.any() && !held_.load(std::memory_order_relaxed);
    return limited ? roll(folder, p, limits_.part_bytes()) : 0;
  }

  /// Renames those of a thread's logs that have at least this many bytes, which makes them parts.
  /// Returns 0 or errno.
  int roll(const log_folder& folder, producer& p, std::uint64_t least = 1) noexcept {
    const int error = roll_logs(folder, *p.ring, p.logs, least, numbers_);
    p.log_blocks = bytes_in_blocks(*p.ring);
    return error;
  }

  /// Whether the logs of dead threads use much of the size limit. Then those that no other thread
  /// has continued should become parts, which can be deleted: see roll_dead(). True at most once
  /// per second, because a new thread must then create a file instead of continuing such a log.
  bool should_roll_dead() noexcept {
    if (!limits_.crowded() || held_.load(std::memory_order_relaxed)) return false;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (now_ns - dead_rolled_ns_ < 1'000'000'000) return false;
    dead_rolled_ns_ = now_ns;
    return true;
  }
  /// Makes the logs of a dead thread parts, and lets the next keep() delete them, unless the ring
  /// has got new records since the previous call.
  void roll_dead(const log_folder& folder, producer& p) noexcept {
    const std::uint64_t before = p.records_before;
    p.records_before = p.ring->published[0].load(std::memory_order_relaxed);
    if (p.log_blocks == 0 || p.records_before != before) return;
    roll(folder, p);
    limits_.logs_rolled();
  }

  /// Whether logs have grown so much that old parts should be deleted immediately.
  bool overdue() const noexcept { return limits_.overdue(); }

  /// hold(true) keeps logs from becoming parts because of their size, until hold(false) is called.
  /// Snapshots are taken in between. Otherwise a snapshot could contain the newest lines of a log
  /// without the part before them.
  void hold(bool held) noexcept { held_.store(held, std::memory_order_relaxed); }

  /// For a forked child, in which the parent's other threads do not exist: ends a hold and a check
  /// of the directory that they had begun.
  void after_fork_in_child() noexcept {
    hold(false);
    limits_.after_fork_in_child();
  }

  /// Deletes the logs that exceed the limits of size and age. Returns false, without checking the
  /// logs, if they were last checked only a short time ago.
  LOTUS_DETAIL_COLD bool keep(const log_folder& folder, deleted_logs& forgotten) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (limits_.part_ns() != 0 &&
        now_ns - rolled_ns_.load(std::memory_order_relaxed) >= limits_.part_ns()) {
      rolled_ns_.store(now_ns, std::memory_order_relaxed);
      roll_all();
    }
    return limits_.keep(folder.directory, folder.prefix, folder.owners, forgotten);
  }

 private:
  /// Returns how many bytes the logs of a ring to which the next lines are appended occupy on the
  /// disk.
  static std::uint64_t bytes_in_blocks(const ring_block& ring) noexcept {
    std::uint64_t blocks = 0;
    for (const log_position& log : ring.committed().logs) {
      blocks += (log.length + disk_block_bytes - 1) / disk_block_bytes;
    }
    return blocks * disk_block_bytes;
  }

  log_limits limits_;
  part_numbers numbers_;
  std::atomic<std::uint32_t> rolls_{0};
  std::atomic<std::int64_t> rolled_ns_{0};
  std::int64_t dead_rolled_ns_ = 0;  ///< used by the drain thread only
  std::atomic<bool> held_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_LOG_RETENTION_HPP
