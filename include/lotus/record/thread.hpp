// What the session has of a thread.
#ifndef LOTUS_RECORD_THREAD_HPP
#define LOTUS_RECORD_THREAD_HPP

#include <atomic>
#include <cstdint>

#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/descriptor.hpp"
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

/// How long a thread was off the CPU since it was last asked.
struct off_cpu_time {
  std::uint64_t off_ns = 0;        ///< 0: not at all, or nobody knows
  std::uint64_t run_queue_ns = 0;  ///< of it, waiting for a CPU; or run_queue_unknown
};

/// What has been told of a thread's time off the CPU. For the owning thread.
struct cpu_account {
  std::uintptr_t reading = 0;  ///< as thread_ring::storing; a handler meanwhile keeps off
  bool begun = false;
  std::int64_t told_off_ns = 0;  ///< of wall time less CPU time
  std::int64_t told_run_queue_ns = 0;
  std::uint32_t futile = 0;  ///< readings in a row that found nothing
  std::int64_t futile_since_ns = 0;
  owned_descriptor schedstat;
};

/// One living thread. Stays where it is until the thread is dead, whatever becomes of the ring;
/// then another thread takes it over. Never freed.
struct producer : aggregating_ring {
  cpu_account cpu;  ///< for the owning thread

  // For the session, under `guard`.
  alignas(64) mutex guard;
  std::atomic<std::uint32_t> tid{0};  ///< 0: free
  ring_block* ring = nullptr;
  bool ring_in_file = false;  ///< what the ring holds survives the process
  bool attached = false;      ///< the ring is the running session's; else left over from one before
  /// Kept open between drains, for as many threads as the session likes.
  open_log logs[log_roles];
  bool logs_kept_open = false;
  bool shares_logs = false;        ///< its logs are of several threads, one after the other
  std::uint32_t rolls = 0;         ///< how often all logs have become parts, of which its are
  compact_chain* chain = nullptr;  ///< of the compact log, where there is one; never freed
  backlog_chunk* backlog_first = nullptr;
  backlog_chunk* backlog_last = nullptr;
  producer* next = nullptr;
};

/// Whether this thread is in a handler that interrupted the storing of a record. Of a storing that
/// a handler has left for good nothing is left.
inline bool interrupts_storing(thread_ring& ring) noexcept {
  const std::uintptr_t place = ring.storing.load(std::memory_order_relaxed);
  if (place == 0) return false;
  if (is_interrupted(place)) return true;
  ring.storing_nested.store(0, std::memory_order_relaxed);
  ring.storing.store(0, std::memory_order_relaxed);
  return false;
}

/// Where this thread has one.
inline producer* this_producer() noexcept {
  return static_cast<producer*>(this_ring);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_THREAD_HPP
