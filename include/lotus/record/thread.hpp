// Defines the state that the session keeps for each thread: struct producer.
#ifndef LOTUS_RECORD_THREAD_HPP
#define LOTUS_RECORD_THREAD_HPP

#include <atomic>
#include <cstdint>

#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/descriptor.hpp"
#include "lotus/base/extrapolated_clock.hpp"
#include "lotus/base/interruption.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread_ring.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

struct backlog_chunk;
class compact_chain;

/// How long a thread was off the CPU since the previous reading of its clocks.
struct off_cpu_time {
  std::uint64_t off_ns = 0;  ///< time off the CPU; 0 if there was none, or if it is unknown
  /// The part of off_ns in which the thread waited for a CPU, or run_queue_unknown.
  std::uint64_t run_queue_ns = 0;
};

/// A thread's schedstat file, and what it contained when it was last read.
struct run_queue_file {
  owned_descriptor descriptor;
  std::int64_t checked_ns = 0;  ///< when the descriptor was last checked
  std::int64_t cpu_ns = 0;
  std::int64_t queue_ns = 0;
};

/// How much of a thread's time off the CPU was time in the run queue. The recorded time includes
/// predictions; see store/run_queue_account.hpp.
struct run_queue_account {
  run_queue_file file;
  std::int64_t recorded_ns = 0;
  std::int64_t queue_ns = 0;       ///< the last reading of the time in the run queue; -1: unknown
  std::int64_t unread_off_ns = 0;  ///< time off the CPU recorded since that reading
  /// The waits for a CPU since that reading, if threads waited for CPUs only while they computed.
  std::int64_t predicted_ns = 0;
  double share = 0;  ///< the share of waits for a CPU in the time before that reading
  /// How many times in a row predicted_ns was right when queue_ns was read.
  std::uint32_t right_predictions = 0;
  std::uint64_t due_ticks = 0;  ///< when the next reading is allowed
};

/// The moments between which a thread was off the CPU.
struct off_cpu_window {
  /// The last known moment at which the thread was on the CPU; 0 if unknown.
  std::uint64_t begin_ticks;
  std::uint64_t end_ticks;
};

/// How much of a thread's time off the CPU has been recorded already. Only that thread uses the
/// object. The recorded time includes estimates; see store/cpu_clock.hpp.
struct cpu_account {
  /// Stack pointer of the thread while it reads its clocks, otherwise 0. A signal handler that
  /// finds this value set has interrupted the reading, and does not read the clocks.
  std::uintptr_t reading = 0;
  bool begun = false;
  std::uint32_t futile = 0;  ///< number of consecutive calls that found no time off the CPU
  std::int64_t futile_since_ns = 0;

  extrapolated_clock wall;
  std::int64_t recorded_off_ns = 0;
  std::int64_t off_ns = 0;  ///< wall time minus CPU time when the CPU clock was last read
  /// The share of the windows before the last reading in which the thread was off the CPU.
  double off_share = 0;

  std::uint64_t looked_ticks = 0;  ///< when the thread last found that it was switched out
  std::uint64_t window_ticks = 0;  ///< total length of the windows since the last reading
  std::uint64_t due_ticks = 0;     ///< when the next reading is allowed
  run_queue_account queue;
};

/// The session's state of one thread. A producer belongs to one thread until that thread is dead,
/// even if its ring is replaced. It is never freed, but reused for another thread.
struct producer : aggregating_ring {
  cpu_account cpu;  ///< the time off the CPU that records already contain; used by this thread only

  // The session uses the following members while it holds `guard`.
  alignas(64) mutex guard;
  std::atomic<std::uint32_t> tid{0};  ///< id of the thread; 0: the producer is free
  ring_block* ring = nullptr;
  /// Whether the ring is in a file and so survives the death of the process.
  bool ring_in_file = false;
  /// Whether the ring must be replaced before the thread's next record, because its file was
  /// deleted together with the run's directory.
  bool ring_file_deleted = false;
  bool attached = false;  ///< whether the ring belongs to the current recording
  /// The thread's logs. Class kept_logs limits how many threads' logs stay open between two drains.
  open_log logs[log_roles];
  bool logs_kept_open = false;
  bool shares_logs = false;  ///< whether the logs also contain records of earlier or later threads
  /// How often log_retention::roll_all() had been called when the logs last became parts because of
  /// such a call. If there were more calls since then, the logs become parts at the next drain.
  std::uint32_t rolls = 0;
  /// Bytes on the disk of the logs that the thread's next records continue, if logs are limited.
  std::uint64_t log_blocks = 0;
  /// How many records the ring had got when log_retention::roll_dead() was last called.
  std::uint64_t records_before = 0;
  /// State of the encoder that writes the thread's compact log; null if there is none; never freed.
  compact_chain* chain = nullptr;
  backlog_chunk* backlog_first = nullptr;
  backlog_chunk* backlog_last = nullptr;
  producer* next = nullptr;
};

/// Returns whether the caller is a signal handler that interrupted the storing of a record. If an
/// earlier handler exited by siglongjmp, so that the storing will never continue, resets `storing`.
inline bool interrupts_storing(thread_ring& ring) noexcept {
  const std::uintptr_t place = ring.storing.load(std::memory_order_relaxed);
  if (place == 0) return false;
  if (is_interrupted(place)) return true;
  ring.storing_nested.store(0, std::memory_order_relaxed);
  ring.storing.store(0, std::memory_order_relaxed);
  return false;
}

/// Returns this thread's producer; null if it has none.
inline producer* this_producer() noexcept {
  return static_cast<producer*>(this_ring);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_THREAD_HPP
