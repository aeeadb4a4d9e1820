// Manages the rings of all threads, and drains them: writes their records to the logs.
#ifndef LOTUS_STORE_STORAGE_HPP
#define LOTUS_STORE_STORAGE_HPP

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "lotus/base/clock.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/log_appender.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/format/line.hpp"
#include "lotus/format/record_kinds.hpp"
#include "lotus/options.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/backlog.hpp"
#include "lotus/store/drain_buffers.hpp"
#include "lotus/store/kept_logs.hpp"
#include "lotus/store/limits/log_retention.hpp"
#include "lotus/store/limits/thread_start.hpp"
#include "lotus/store/producer_drain.hpp"
#include "lotus/store/ring_file.hpp"
#include "lotus/store/run/run_files.hpp"
#include "lotus/store/session_clock.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The numbers of records that the last drain of a thread could not write to its logs.
struct unwritten_records {
  std::uint64_t recoverable = 0;  ///< records that are still in the ring file
  std::uint64_t lost = 0;
};

/// Gives threads rings, and drains the rings. Call open() under the session's control lock, and
/// functions with a producer as argument under that producer's guard.
class LOTUS_DETAIL_PER_MODULE storage {
 public:
  storage(run_files& files, session_clock& clock, const name_table& names) noexcept
      : files_{files}, clock_{clock}, names_{names} {}

  /// Opens the run's files. Returns 0 or errno; reports an error only once per run.
  LOTUS_DETAIL_COLD int open(const options& chosen) noexcept {
    if (const int error = files_.open(chosen); error != 0) return error;
    compact_ = files_.logs_folder().compact;
    backlog_.begin(chosen.backlog_bytes);
    retention_.begin(chosen);
    const log_folder folder = files_.logs_folder();
    retention_.begin_after_parts(folder.directory, folder.prefix, folder.owners);
    own_logs_.store(0, std::memory_order_relaxed);
    disk_full_ns_.store(0, std::memory_order_relaxed);
    ring_records_ = min_ring_records;
    small_rings_ = chosen.when_full == full_ring::drain;
    while (ring_records_ < chosen.ring_records && ring_records_ < (1U << 24)) ring_records_ *= 2;
    files_.make_ring_file(retention_.any());
    return 0;
  }

  // --- A thread's ring.

  /// Gives a thread a new ring in this run. Returns false if there is no memory.
  LOTUS_DETAIL_COLD bool attach(producer& p) noexcept {
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    files_.make_due_ring_file();
    files_.recover_thread(tid);
    if (p.ring != nullptr) ring_file::unmap(p.ring);
    use_no_ring(p);
    ring_block* const ring = files_.add_ring(tid, ring_records_, small_rings_, p.ring_in_file);
    if (ring == nullptr) return false;
    commit_point begin{};
    begin.loader = p.loader;
    ring->commit(begin);
    use_ring(p, *ring);
    p.attached = true;
    p.ring_file_deleted = false;
    own_logs_.fetch_add(1, std::memory_order_relaxed);
    p.longest_wait_ticks.store(0, std::memory_order_relaxed);
    return true;
  }

  /// Replaces the empty ring of a thread that started while the disk was full, if the ring file can
  /// grow again. Only that thread may call this function. Returns whether the ring was replaced.
  bool replace_small_ring(producer& p) noexcept {
    if (LOTUS_DETAIL_LIKELY(p.ring_in_file && p.ring->capacity == ring_records_)) return false;
    if (is_disk_full()) return false;
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    ring_block* const ring = files_.add_whole_ring(tid, ring_records_);
    if (ring == nullptr) return false;
    commit_point c = p.ring->committed();
    for (std::uint64_t& tail : c.tail) tail = 0;
    ring->commit(c);
    ring->waiting_since = p.ring->waiting_since.load();
    forget_records_in_memory(*p.ring);  // from now on, the new ring counts them
    ring_file::unmap(p.ring);
    use_ring(p, *ring);
    p.ring_in_file = true;
    return true;
  }

  /// Returns whether the calling thread may reuse a dead thread's ring. If the two threads share
  /// logs, readers would treat a span of one thread inside a span of the other as nested. The
  /// calling thread may have begun a span before its first call of the session. So the ring may be
  /// reused only if all spans of the dead thread ended before the calling thread started.
  bool may_reuse_ring(const producer& p, thread_start& started) noexcept {
    if (!p.attached || !shares_logs()) return true;
    const std::uint64_t head = p.ring->published[0].load(std::memory_order_relaxed);
    if (head == 0) return true;
    const record& last = p.ring->slot(0, head - 1);
    const std::uint64_t ended = kind_of(last.tag).lasts() ? last.end_ticks : last.begin_ticks;
    return started.is_after(ended, clock_);
  }

  /// Prepares the ring of a drained producer for another thread, whose id is in p.tid.
  LOTUS_DETAIL_COLD void prepare_for_next_thread(producer& p) noexcept {
    const bool share = p.attached && shares_logs();
    if (!share) kept_logs_.close(p);
    if (!p.attached) return;
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    files_.recover_thread(tid);
    // If the size or age of logs is limited, the dead thread's logs become parts, so that they can
    // be deleted. This must happen while the ring still has that thread's id, which is in the
    // names.
    if (share && !p.shares_logs && retention_.any()) retention_.roll(files_.logs_folder(), p);
    p.ring->tid.store(tid, std::memory_order_relaxed);
    commit_point c = p.ring->committed();
    c.loader = p.loader;
    if (share && p.shares_logs) return p.ring->commit(c);
    p.shares_logs = share;
    if (share) {
      kept_logs_.close(p);
    } else {
      own_logs_.fetch_add(1, std::memory_order_relaxed);
    }
    files_.add_thread(tid);
    const std::uint32_t number = share ? files_.new_log_number(tid) : 0;
    for (log_position& log : c.logs) log = {0, 0, false, number, 0};
    p.ring->commit(c);
  }

  /// Ends the use of a thread's ring and discards records that are not in the logs. The ring stays
  /// mapped until the next attach(), because its thread may be storing a record now.
  /// @return how many of the discarded records were not in a ring file either, and so are lost.
  std::uint64_t detach(producer& p) noexcept {
    const bool survives = p.ring == nullptr || p.ring_in_file;
    std::uint64_t lost = survives ? 0 : lane_heads{*p.ring}.beyond(p.ring->committed());
    while (p.backlog_first != nullptr) lost += backlog_.drop_oldest(p);
    kept_logs_.close(p);
    p.attached = p.shares_logs = false;
    return lost;
  }

  // --- Writing records to logs.

  /// Writes to the logs of p's thread all records that the thread has completely stored in its
  /// ring. Returns 0 or errno; records that could not be written stay in the ring or in memory.
  int drain(producer& p) noexcept {
    const lane_heads heads{*p.ring};
    const bool empty = heads.beyond(p.ring->committed()) == 0 && p.backlog_first == nullptr;
    if (empty && !retention_.is_due(p)) return 0;
    drain_buffer* buffer = buffers_.take();
    if (buffer == nullptr) return ENOMEM;
    files_.tie_clock();
    const tick_converter clock = clock_.converter();
    const log_folder folder = files_.logs_folder();
    log_appender logs{folder, *p.ring, p.logs};
    const int error = drain_producer(
        p, heads, {clock, names_, compact_, *buffer, backlog_, files_.written()}, logs);
    note_full_disk(error);
    const int not_rolled = error == 0 ? retention_.after_drain(folder, p) : 0;
    if (not_rolled != 0) files_.reports().limits_fail(files_.location(), not_rolled);
    if (retention_.overdue()) keep_limits();
    buffers_.give_back(buffer);
    kept_logs_.keep_or_close(p);
    files_.reports().disk(files_.location(), error, logs.name());
    return error;
  }

  /// Whether the last drain found the disk full, less than retry_ns ago. Callers then do not drain
  /// again yet, because a failing drain takes about 20 us.
  bool is_disk_full() const noexcept {
    constexpr std::int64_t retry_ns = 10'000'000;
    const std::int64_t failed_ns = disk_full_ns_.load(std::memory_order_relaxed);
    return failed_ns != 0 && clock_ns(CLOCK_MONOTONIC) < failed_ns + retry_ns;
  }

  /// Moves the records of a ring to memory, because they cannot be written to the logs. Returns
  /// false if the memory limit is reached.
  bool set_aside(producer& p) noexcept { return backlog_.set_aside(p); }
  /// Drops the oldest records of a thread that are in memory: one chunk. Returns their number.
  std::uint64_t drop_oldest(producer& p) noexcept { return backlog_.drop_oldest(p); }

  /// Copies records that are only in memory to the ring file, as long as the file can grow, and
  /// discards the rest. Called when the last drain of `p` has failed.
  LOTUS_DETAIL_COLD unwritten_records leave(producer& p) noexcept {
    unwritten_records sum;
    while (p.backlog_first != nullptr) {
      leave(p.backlog_first->ring, sum);
      backlog_.drop_oldest(p);
    }
    forget_records_in_memory(*p.ring);  // otherwise, recovery would count them too
    if (p.ring_in_file) {
      sum.recoverable += lane_heads{*p.ring}.beyond(p.ring->committed());
    } else {
      leave(*p.ring, sum);
    }
    return sum;
  }

  /// Deletes the oldest logs of the run if its logs exceed the limits of size or age that the
  /// program has chosen.
  LOTUS_DETAIL_COLD void keep_limits() noexcept {
    deleted_logs forgotten;
    if (!retention_.any() || !retention_.keep(files_.logs_folder(), forgotten)) return;
    if (forgotten.error != 0) files_.reports().limits_fail(files_.location(), forgotten.error);
    files_.add_deleted(forgotten);
  }

  log_retention& retention() noexcept { return retention_; }

  // --- Functions for a forked child. The rings and their records belong to its parent.

  LOTUS_DETAIL_COLD void after_fork_in_child(producer& p) noexcept {
    // The process may have been forked by a signal handler that had interrupted the storing of a
    // record. Then the interrupted code continues in the child after the handler and writes to the
    // ring, so the ring's address must stay mapped.
    const bool in_use = p.storing.load(std::memory_order_relaxed) != 0;
    if (p.ring != nullptr) in_use ? ring_file::replace(p.ring) : ring_file::unmap(p.ring);
    use_no_ring(p);
    detach(p);
  }
  void after_fork_in_child() noexcept { retention_.after_fork_in_child(); }

  mutex& buffers_fork_lock() noexcept { return buffers_.fork_lock(); }

 private:
  static void forget_records_in_memory(ring_block& ring) noexcept {
    commit_point c = ring.committed();
    c.in_memory = 0;
    ring.commit(c);
  }

  /// `slots` stays, because interrupted code may still store a record there; see
  /// after_fork_in_child().
  static void use_no_ring(producer& p) noexcept {
    p.ring = nullptr;
    p.published = &p.none_published;
    gate_of(p).waiting_since = nullptr;
  }

  static void use_ring(producer& p, ring_block& ring) noexcept {
    p.ring = &ring;
    p.slots = ring.slots();
    p.mask = ring.capacity - 1;
    p.published = &ring.published[0];
    gate_of(p).waiting_since = &ring.waiting_since;
  }

  /// Whether a thread that reuses a dead thread's ring shares its logs with other threads that
  /// reuse this ring. If the size and age of logs are not limited, the first threads get logs of
  /// their own. Later threads share logs, because many short-lived threads would otherwise create
  /// many tiny files.
  bool shares_logs() const noexcept {
    constexpr std::uint32_t max_own_logs = 64;
    return retention_.any() || own_logs_.load(std::memory_order_relaxed) >= max_own_logs;
  }

  void note_full_disk(int error) noexcept {
    const bool full = error == ENOSPC || error == EDQUOT;
    if (full || disk_full_ns_.load(std::memory_order_relaxed) != 0) {
      disk_full_ns_.store(full ? clock_ns(CLOCK_MONOTONIC) : 0, std::memory_order_relaxed);
    }
  }

  LOTUS_DETAIL_COLD void leave(ring_block& ring, unwritten_records& sum) noexcept {
    const lane_heads heads{ring};
    const std::uint64_t records = heads.beyond(ring.committed());
    if (records > 0) (files_.add_copy(ring, heads) ? sum.recoverable : sum.lost) += records;
    skip_records(ring, heads);
  }

  run_files& files_;
  session_clock& clock_;
  const name_table& names_;
  bool compact_ = false;
  std::uint32_t ring_records_ = 0;
  /// Whether threads may get small rings. If full rings drop records, these would drop too many.
  bool small_rings_ = true;
  /// Time of CLOCK_MONOTONIC, in ns, at which the last drain found the disk full; 0 if the last
  /// drain did not.
  std::atomic<std::int64_t> disk_full_ns_{0};
  std::atomic<std::uint32_t> own_logs_{0};  ///< number of threads so far that got logs of their own
  kept_logs kept_logs_;
  log_retention retention_;
  backlog backlog_;
  drain_buffers buffers_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_STORAGE_HPP
