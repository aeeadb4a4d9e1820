// Keeps the recorder consistent in the parent and in the child when the process forks.
#ifndef LOTUS_STORE_FORK_GUARD_HPP
#define LOTUS_STORE_FORK_GUARD_HPP

#include <atomic>
#include <cstdint>

#include "lotus/aggregates/store/aggregate_store.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/cpu_clock.hpp"
#include "lotus/store/producers.hpp"
#include "lotus/store/recording_state.hpp"
#include "lotus/store/run/run_files.hpp"
#include "lotus/store/session_clock.hpp"
#include "lotus/store/slow_path.hpp"
#include "lotus/store/storage.hpp"
#include "lotus/waits/store/wait_sampler.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The parts of a recorder that have a lock, or that a forked child must not share with its parent.
struct LOTUS_DETAIL_PER_MODULE forked_parts {
  const recording_state& state;
  mutex& round;
  producer_list& producers;
  storage& rings;
  aggregate_store& aggregates;
  run_files& files;
  session_clock& clock;
  name_table& names;
  cpu_clock& cpu;
  const slow_path& slow;
  wait_sampler& waits;
};

/// Holds all locks of the recorder during a fork. Otherwise the child could get a copy of data that
/// another thread was changing. Not thread-safe; the session calls one function at a time.
class LOTUS_DETAIL_PER_MODULE fork_guard {
 public:
  explicit fork_guard(const forked_parts& of) noexcept : of_{of} {}

  void before() noexcept {
    forking_tid_ = thread_id();
    of_.round.lock();
    of_.producers.fork_lock().lock();
    of_.producers.for_each([](producer& p) { p.guard.lock(); });
    for_each_lock([](mutex& m) { m.lock(); });
    of_.clock.before_fork();
    // From here on, the forking thread cannot store a record in its ring directly: if a signal
    // handler records during the fork, it takes the slow path, which detects the fork.
    of_.producers.for_each([this](producer& p) {
      if (p.tid.load(std::memory_order_relaxed) != forking_tid_) return;
      slow_path::close_lanes(p);
      aggregate_store::close(p);
    });
  }

  /// Unlocks all locks, in the parent and in the child. In the child, call become_child() first.
  void after() noexcept {
    const bool stores = of_.state.is_on() && !of_.state.writes_through();
    of_.producers.for_each([&](producer& p) {
      if (p.tid.load(std::memory_order_relaxed) != forking_tid_) return;
      if (p.attached) of_.slow.open_lanes(p);
      if (stores) aggregate_store::reopen(p);
    });
    // These locks are unlocked in the order in which threads take them. So a thread that waits for
    // the first lock can continue, and the locks that it takes next are unlocked soon after.
    for_each_lock([](mutex& m) { m.unlock(); });
    of_.producers.for_each([](producer& p) { p.guard.unlock(); });
    of_.producers.fork_lock().unlock();
    of_.round.unlock();
  }

  LOTUS_DETAIL_COLD void become_child() noexcept {
    of_.producers.for_each([this](producer& p) {
      aggregate_store::after_fork_in_child(p);
      of_.rings.after_fork_in_child(p);
      slow_path::close_lanes(p);
      p.dropped.store(0, std::memory_order_relaxed);
      of_.cpu.give_up(p.cpu);
      const bool forked = p.tid.load(std::memory_order_relaxed) == forking_tid_;
      p.tid.store(forked ? thread_id() : 0, std::memory_order_relaxed);
    });
    of_.producers.after_fork_in_child();
    of_.rings.after_fork_in_child();
    of_.files.after_fork_in_child();
    of_.clock.after_fork_in_child();
    cpu_clock::disturb();
  }

 private:
  /// Calls a function for each lock that may be taken while a producer's guard is held, in the
  /// order in which threads take them.
  void for_each_lock(void (*each)(mutex&)) noexcept {
    each(of_.waits.fork_lock());
    each(of_.aggregates.fork_lock());
    each(of_.files.fork_lock());
    each(of_.files.leftovers_fork_lock());
    each(of_.clock.fork_lock());
    each(of_.names.fork_lock());
    each(of_.files.directory_fork_lock());
    each(of_.rings.buffers_fork_lock());
  }

  const forked_parts of_;
  std::uint32_t forking_tid_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_FORK_GUARD_HPP
