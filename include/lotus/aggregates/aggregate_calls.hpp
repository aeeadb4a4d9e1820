// Begins and ends calls of operations that are counted instead of recorded
// (LOTUS_SCOPE_AGGREGATED).
#ifndef LOTUS_AGGREGATES_AGGREGATE_CALLS_HPP
#define LOTUS_AGGREGATES_AGGREGATE_CALLS_HPP

#include <atomic>
#include <cstdint>

#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/stack_pointer.hpp"
#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread_ring.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Requests a record with the self time of this thread's counted calls since the last such record.
/// The thread stores the record when it next begins or ends a span.
LOTUS_DETAIL_RARE void mark_watch() noexcept;
/// Adds calls that aggregate() cannot add directly: a thread's first call, a call that needs memory
/// for a new name or range of durations, and calls in a signal handler that interrupted
/// aggregate().
/// @param taken  whether aggregate() has already added `call`. If so, this function adds only the
///   calls that ended in signal handlers while aggregate() was running.
LOTUS_DETAIL_RARE void aggregate_slow(aggregate_call call, bool taken) noexcept;

/// Begins a call of an operation that is counted. Returns a value that the caller must pass to
/// aggregate() when the call ends.
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t begin_aggregated() noexcept {
  if (LOTUS_DETAIL_UNLIKELY(this_cpu_watch.may_be_marked())) mark_watch();
  thread_ring* const p = this_ring;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) return 0;
  const std::uint64_t outer_ticks = aggregates_of(*p).inner_ticks;
  aggregates_of(*p).inner_ticks = 0;
  return outer_ticks;
}

/// Ends a call of an operation that is counted, and adds the call to the sums of that operation.
/// After this function returns, every reader sees the call, even if the process is killed.
/// @param outer_ticks  the result of begin_aggregated().
/// Errors: none thrown. Thread and signal safety: any thread and signal handler. Cost: see
/// bench/scope_bench.cpp.
LOTUS_DETAIL_ALWAYS_INLINE void aggregate(std::uint64_t begin_ticks, std::uint64_t end_ticks,
                                          record_tag tag, std::uint64_t outer_ticks) noexcept {
  const auto name = static_cast<std::uint32_t>(tag.value());
  const std::uint64_t ticks = end_ticks - begin_ticks;
  thread_ring* const p = this_ring;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) {
    return aggregate_slow({aggregate_key(name, 0), ticks, ticks}, false);
  }
  thread_aggregates& a = aggregates_of(*p);
  const std::uint64_t inner_ticks = a.inner_ticks;
  a.inner_ticks = outer_ticks + ticks;
  // The sign bit of inner_ticks (recorded_inside) is set if a span began or ended inside this call.
  // A span, unlike a counted call, has a record of its own.
  if (LOTUS_DETAIL_UNLIKELY(static_cast<std::int64_t>(inner_ticks) < 0)) {
    a.inner_ticks |= thread_aggregates::recorded_inside;
    mark_watch();
  }
  const aggregate_call call{aggregate_key(name, p->loader), ticks,
                            ticks > inner_ticks ? ticks - inner_ticks : 0};
  if (LOTUS_DETAIL_UNLIKELY(a.storing.load(std::memory_order_relaxed) != 0)) {
    return aggregate_slow(call, false);
  }
  // While `storing` is set, a signal handler that interrupts this function takes the slow path, so
  // it does not change the sums that this function is changing.
  a.storing.store(stack_pointer(), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const bool taken = a.take(gate_of(*p).aggregates.load(std::memory_order_acquire), call);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  a.storing.store(0, std::memory_order_relaxed);
  // A handler that has seen `storing` set relies on the following check for its own calls.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (LOTUS_DETAIL_UNLIKELY(!taken || a.interrupting != 0)) aggregate_slow(call, taken);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATE_CALLS_HPP
