// Defines the slow paths of recording: a thread's first record, a full ring, reading CPU clocks.
#ifndef LOTUS_RECORD_RARE_CALLS_HPP
#define LOTUS_RECORD_RARE_CALLS_HPP

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "lotus/aggregates/aggregate_calls.hpp"
#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/clock.hpp"
#include "lotus/base/interruption.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/message.hpp"
#include "lotus/record/published_wait.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/record/thread_ring.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM std::uint64_t monotonic_ticks() noexcept {
  return static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
}

/// Returns this thread's producer (the session's state of the thread), which the first call
/// creates; null if it cannot be created.
/// @param begins  whether all spans that the thread will record begin after this call.
LOTUS_DETAIL_PER_MODULE inline producer* find_producer(const services& s,
                                                       bool begins = true) noexcept {
  if (this_ring == nullptr) this_ring = s.this_thread(begins);
  return this_producer();
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void push_first(const record& r) noexcept {
  const services& s = join_session(true);
  // The record is not from a scope, because a scope gives its thread a producer when it begins, and
  // this thread has none. So the record's span may have begun before this call.
  if (producer* const p = find_producer(s, false)) s.push_slow(*p, r);
}

/// Reports once that a record was not completely stored, and perhaps never will be.
LOTUS_DETAIL_COLD inline void say_abandoned() noexcept {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  say("a signal handler that interrupted the storing of a record left it by siglongjmp or by "
      "switching fibres: records of this thread may be missing, which are not counted");
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void push_slow(thread_ring& ring, const record& r) noexcept {
  const services& s = *this_module.hub.load(std::memory_order_acquire);
  auto& p = static_cast<producer&>(ring);
  const bool storing = p.storing.load(std::memory_order_relaxed) != 0;
  if (!storing) return s.push_slow(p, r);
  if (interrupts_storing(p)) return s.push_nested(p, r);
  say_abandoned();
  push(r.begin_ticks, r.end_ticks, r.tag);
}

/// Returns when the last recorded span ended, which is at most `now`; 0 if that is unknown.
inline std::uint64_t last_end_ticks(const producer& p, std::uint64_t now) noexcept {
  const std::uint64_t at = p.published->load(std::memory_order_relaxed);
  if (at == 0 || p.slots == nullptr) return 0;
  const record& last = p.slots[(at - 1) & p.mask];
  // In records of events, end_ticks may be a number.
  const bool ends = last.end_ticks >= last.begin_ticks && last.end_ticks <= now;
  return ends ? last.end_ticks : std::min(last.begin_ticks, now);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void read_cpu(std::uint64_t ticks,
                                                  std::uint64_t begin_ticks) noexcept {
  const services& s = join_session(true);
  producer* const p = find_producer(s);
  if (p == nullptr) return;
  if (ticks == 0) ticks = now_ticks();
  record_tag aggregated;
  const std::uint64_t own_ticks = s.aggregated_ticks(*p, &aggregated);
  if (own_ticks != 0) push(ticks - own_ticks, ticks, aggregated);
  if (this_cpu_watch.unmark()) return;
  const off_cpu_time found =
      s.read_cpu(*p, this_cpu_watch, {std::max(begin_ticks, last_end_ticks(*p, ticks)), ticks});
  if (found.off_ns != 0) push(ticks, found.off_ns, {event_kind::off_cpu, found.run_queue_ns});
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void get_ring() noexcept {
  const services& s = join_session(true);
  if (producer* const p = find_producer(s)) s.get_ring(*p);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void mark_watch() noexcept {
  // If this shared object has not set up the thread's cpu_watch yet, read_cpu() does so.
  if (this_cpu_watch.word == &never_looked) read_cpu(0, 0);
  this_cpu_watch.mark();
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void aggregate_slow(aggregate_call call, bool taken) noexcept {
  const services& s = join_session(true);
  producer* const p = find_producer(s, false);
  if (p == nullptr) return;
  // Signal handlers of this thread also change what this function checks and then changes.
  const signals_blocked quiet;
  thread_aggregates& a = aggregates_of(*p);
  const std::uintptr_t place = a.storing.load(std::memory_order_relaxed);
  if (place != 0 && is_interrupted(place)) {
    if (a.interrupting < thread_aggregates::max_interrupting) {
      a.interrupting_calls[a.interrupting++] = call;
    } else {
      p->dropped.fetch_add(1, std::memory_order_relaxed);
    }
    return;
  }
  if (place != 0) {
    // A signal handler interrupted this thread while the thread added a call, and exited by
    // siglongjmp. The unfinished addition will never continue, so it is undone.
    if (aggregates_block* const in = gate_of(*p).aggregates.load(std::memory_order_acquire)) {
      a.undo_unfinished(*in);
    }
    a.storing.store(0, std::memory_order_relaxed);
  }
  if (!taken) s.aggregate_slow(*p, call);
  while (a.interrupting > 0) {
    const aggregate_call interrupting = a.interrupting_calls[--a.interrupting];
    s.aggregate_slow(*p, interrupting);
  }
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM record_tag refuse_batch(std::uint64_t number) noexcept {
  join_session(true).refuse_batch(number);
  return {};
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void begin_annotation(record_tag tag) noexcept {
  if (!tag.empty()) join_session(true).begin_task(tag);
}
LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void end_annotation(std::uint64_t begin_ticks,
                                                        record_tag tag) noexcept {
  if (!tag.empty()) join_session(true).end_task(begin_ticks, tag);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_RARE_CALLS_HPP
