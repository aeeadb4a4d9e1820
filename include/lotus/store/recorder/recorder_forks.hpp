// A process with a recorder forks: parent and child each go on with a whole one.
#ifndef LOTUS_STORE_RECORDER_RECORDER_FORKS_HPP
#define LOTUS_STORE_RECORDER_RECORDER_FORKS_HPP

#include <atomic>

#include "lotus/config.hpp"
#include "lotus/record/producers.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/cpu_clock.hpp"
#include "lotus/store/recorder.hpp"
#include "lotus/store/ring_file.hpp"
#include "lotus/store/run_info.hpp"
#include "lotus/store/storage.hpp"
#include "lotus/store/storage_aggregates.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline void recorder::before_fork() noexcept {
  forking_tid_ = thread_id();
  round_.lock();
  producers_.fork_lock().lock();
  producers_.for_each([](producer& p) { p.guard.lock(); });
  storage_.for_each_file_lock([](mutex& m) { m.lock(); });
  clock_.fork_lock().lock();
  names_.fork_lock().lock();
  storage_.for_each_leaf_lock([](mutex& m) { m.lock(); });
  producers_.for_each([&](producer& p) {
    if (p.tid.load(std::memory_order_relaxed) != forking_tid_) return;
    p.limit.store(0, std::memory_order_relaxed);
    p.interrupt_limit.store(0, std::memory_order_relaxed);
    aggregates_of(p).first.store(nullptr, std::memory_order_relaxed);
  });
}

inline void recorder::after_fork() noexcept {
  producers_.for_each([&](producer& p) {
    if (p.tid.load(std::memory_order_relaxed) != forking_tid_) return;
    if (p.attached) open_lanes(p);
    if (is_on() && !write_through_.load()) storage::reopen_aggregates(p);
  });
  storage_.for_each_leaf_lock([](mutex& m) { m.unlock(); });
  names_.fork_lock().unlock();
  clock_.fork_lock().unlock();
  storage_.for_each_file_lock([](mutex& m) { m.unlock(); });
  producers_.for_each([](producer& p) { p.guard.unlock(); });
  producers_.fork_lock().unlock();
  round_.unlock();
}

inline void storage::after_fork_in_child(producer& p) noexcept {
  forget_aggregates(p);
  // Where a handler forks that interrupted a scope, that one will go on with the ring.
  const bool in_use = p.storing.load(std::memory_order_relaxed) != 0;
  if (p.ring != nullptr) in_use ? ring_file::replace(p.ring) : ring_file::unmap(p.ring);
  p.ring = nullptr;
  p.published = &p.none_published;
  p.waiting_since = &p.none_waiting;
  detach(p);
}

inline void storage::after_fork_in_child() noexcept {
  file_.forget();
  leftovers_.forget();
  info_ = run_info{};
  told_spans_.forget();
  written_.store(0, std::memory_order_relaxed);
  ring_file_due_ = true;
  retention_.after_fork_in_child();
  kept_names_.no_file();
}

inline void recorder::become_child() noexcept {
  producers_.for_each([&](producer& p) {
    storage_.after_fork_in_child(p);
    p.limit.store(0, std::memory_order_relaxed);
    p.interrupt_limit.store(0, std::memory_order_relaxed);
    p.dropped.store(0, std::memory_order_relaxed);
    cpu_.give_up(p.cpu);
    const bool forked = p.tid.load(std::memory_order_relaxed) == forking_tid_;
    p.tid.store(forked ? thread_id() : 0, std::memory_order_relaxed);
  });
  storage_.after_fork_in_child();
  cpu_clock::disturb();
  losses_.forget();
  drain_thread_.forget();
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDER_RECORDER_FORKS_HPP
