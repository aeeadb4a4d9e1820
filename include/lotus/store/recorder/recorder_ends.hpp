// A recording ends: all that threads have stored is written.
#ifndef LOTUS_STORE_RECORDER_RECORDER_ENDS_HPP
#define LOTUS_STORE_RECORDER_RECORDER_ENDS_HPP

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/record/producers.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/recorder.hpp"
#include "lotus/store/storage_aggregates.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline void recorder::close() noexcept {
  const locked round{round_};
  recording_.store(false, std::memory_order_release);
  bool keep = !write_aggregates();
  std::uint64_t recoverable = 0;
  producers_.for_each([&](producer& p) {
    const locked guard{p.guard};
    storage::retire_aggregates(p);
    if (!p.attached) return;
    if (!drain_or_leave(p, recoverable)) keep = true;
    losses_.count(storage_.detach(p));
  });
  triggers_.end();
  storage_.close_files(keep, losses_.of_recording(dropped()));
  storage_.close();
  cpu_.begin(false);
  losses_.report(dropped(), recoverable);
}

inline void recorder::close_at_exit() noexcept {
  const locked round{round_};
  if (!is_on()) return;
  write_through_.store(true, std::memory_order_relaxed);
  bool keep = !write_aggregates();
  std::uint64_t recoverable = 0;
  producers_.for_each([&](producer& p) {
    const locked guard{p.guard};
    // A thread that still runs may be storing a record, or adding a call: these can be recovered.
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    const bool runs = tid != 0 && tid != thread_id() && !thread_is_dead(tid);
    if (runs && (p.attached || aggregates_of(p).memory != nullptr)) keep = true;
    if (!p.attached) return;
    if (!drain_or_leave(p, recoverable)) keep = true;
    open_lanes(p);
  });
  storage_.close_files(keep, losses_.of_recording(dropped()));
  storage_.leave_leftovers();
  losses_.report(dropped(), recoverable);
}

inline bool recorder::write_aggregates() noexcept {
  bool any = false;
  producers_.for_each([&](producer& p) {
    const locked guard{p.guard};
    any = any || aggregates_of(p).memory != nullptr;
    aggregates_of(p).first.store(nullptr, std::memory_order_seq_cst);
    // A call that is being added at this moment takes no longer than this, unless its thread does
    // not run.
    for (int i = 0; i < 100 && aggregates_of(p).storing.load(std::memory_order_seq_cst) != 0; ++i) {
      sched_yield();
    }
  });
  return !any || storage_.write_aggregates(producers_) == 0;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDER_RECORDER_ENDS_HPP
