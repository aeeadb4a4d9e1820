// A process with a recorder forks: parent and child each go on with a whole one.
#ifndef LOTUS_STORE_RECORDER_FORKS_HPP
#define LOTUS_STORE_RECORDER_FORKS_HPP

#include <atomic>

#include "lotus/config.hpp"
#include "lotus/record/producers.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/cpu_clock.hpp"
#include "lotus/store/recorder.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline void recorder::before_fork() noexcept {
  forking_tid_ = thread_id();
  producers_.fork_lock().lock();
  producers_.for_each([](producer& p) { p.guard.lock(); });
  storage_.lock_files_for_fork();
  clock_.fork_lock().lock();
  names_.fork_lock().lock();
  storage_.lock_leaves_for_fork();
  producers_.for_each([&](producer& p) {
    if (p.tid.load(std::memory_order_relaxed) != forking_tid_) return;
    p.limit.store(0, std::memory_order_relaxed);
    p.interrupt_limit.store(0, std::memory_order_relaxed);
  });
}

inline void recorder::after_fork() noexcept {
  producers_.for_each([&](producer& p) {
    if (p.attached && p.tid.load(std::memory_order_relaxed) == forking_tid_) open_lanes(p);
  });
  storage_.unlock_leaves_after_fork();
  names_.fork_lock().unlock();
  clock_.fork_lock().unlock();
  storage_.unlock_files_after_fork();
  producers_.for_each([](producer& p) { p.guard.unlock(); });
  producers_.fork_lock().unlock();
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

#endif  // LOTUS_STORE_RECORDER_FORKS_HPP
