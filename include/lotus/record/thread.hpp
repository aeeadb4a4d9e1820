// What the session stores about a thread.
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

/// How long a thread was off the CPU since the last reading.
struct off_cpu_time {
  std::uint64_t off_ns = 0;        ///< 0: not at all, or unknown
  std::uint64_t run_queue_ns = 0;  ///< the part spent waiting for a CPU, or run_queue_unknown
};

/// How much of a thread's time off the CPU has been recorded. For the owning thread.
struct cpu_account {
  std::uintptr_t reading = 0;  ///< like thread_ring::storing; an interrupting handler does not read
                               ///< the clocks
  bool begun = false;
  std::int64_t told_off_ns = 0;  ///< wall time minus CPU time
  std::int64_t told_run_queue_ns = 0;
  std::uint32_t futile = 0;  ///< number of consecutive readings that found nothing
  std::int64_t futile_since_ns = 0;
  owned_descriptor schedstat;
};

/// One running thread. Keeps its address until the thread is dead, even if its ring changes; then
/// another thread reuses it. Never freed.
struct producer : aggregating_ring {
  cpu_account cpu;  ///< for the owning thread

  // For the session, under `guard`.
  alignas(64) mutex guard;
  std::atomic<std::uint32_t> tid{0};  ///< 0: free
  ring_block* ring = nullptr;
  bool ring_in_file = false;  ///< whether the ring's content survives the process
  bool attached = false;      ///< whether the ring belongs to the current recording, not to an
                              ///< earlier one
  /// Kept open between drains, for as many threads as the session allows.
  open_log logs[log_roles];
  bool logs_kept_open = false;
  bool shares_logs = false;        ///< whether its logs are shared by threads that run one after
                                   ///< another
  std::uint32_t rolls = 0;         ///< which roll-over of all logs into parts its own logs have
                                   ///< followed
  compact_chain* chain = nullptr;  ///< of the compact log, if there is one; never freed
  backlog_chunk* backlog_first = nullptr;
  backlog_chunk* backlog_last = nullptr;
  producer* next = nullptr;
};

/// Whether this thread is in a handler that interrupted the storing of a record. If a handler has
/// abandoned the storing by siglongjmp, clears its traces.
inline bool interrupts_storing(thread_ring& ring) noexcept {
  const std::uintptr_t place = ring.storing.load(std::memory_order_relaxed);
  if (place == 0) return false;
  if (is_interrupted(place)) return true;
  ring.storing_nested.store(0, std::memory_order_relaxed);
  ring.storing.store(0, std::memory_order_relaxed);
  return false;
}

/// Returns null if this thread has none.
inline producer* this_producer() noexcept {
  return static_cast<producer*>(this_ring);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_THREAD_HPP
