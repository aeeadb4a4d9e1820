// Takes the records of all threads and sees that they reach the logs.
#ifndef LOTUS_STORE_RECORDER_HPP
#define LOTUS_STORE_RECORDER_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/base/fork.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/options.hpp"
#include "lotus/record/message.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/producers.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/cpu_clock.hpp"
#include "lotus/store/drain_thread.hpp"
#include "lotus/store/losses.hpp"
#include "lotus/store/session_clock.hpp"
#include "lotus/store/storage.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Every entry blocks signals itself, but for those that the session calls one at a time, with
/// signals blocked: open, close, close_at_exit and the three of a fork.
///
/// Locks, outermost first: the list of producers, a producer's guard, the ring file, leftovers, the
/// clock; names and buffers are leaves.
class LOTUS_DETAIL_PER_MODULE recorder {
 public:
  bool is_on() const noexcept { return recording_.load(std::memory_order_acquire); }
  session_clock& clock() noexcept { return clock_; }
  const log_location& location() const noexcept { return storage_.location(); }
  const name_entry& name(std::uint32_t id) const noexcept { return names_.entry(id); }
  const message_handler& messages() const noexcept { return messages_; }

  /// False, after saying why, when the directory cannot be written.
  bool open(const options& chosen) noexcept {
    messages_.use(chosen.on_message);
    clock_.begin();
    cpu_.begin(chosen.cpu_time);
    if (storage_.open(chosen) != 0) return false;
    when_full_.store(chosen.when_full, std::memory_order_relaxed);
    pace_.begin(chosen.drain_interval_ms);
    losses_.begin(dropped());
    write_through_.store(false, std::memory_order_relaxed);
    recording_.store(true, std::memory_order_release);
    drain_thread_.wake();
    return true;
  }

  void close() noexcept {
    recording_.store(false, std::memory_order_release);
    bool keep = false;
    std::uint64_t recoverable = 0;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      if (!p.attached) return;
      if (!drain_or_leave(p, recoverable)) keep = true;
      losses_.count(storage_.detach(p));
    });
    storage_.close_files(keep, losses_.of_recording(dropped()));
    storage_.close();
    cpu_.begin(false);
    losses_.report(dropped(), recoverable);
  }

  /// The process exits: from now on each record goes into its log at once, for nobody drains later.
  void close_at_exit() noexcept {
    if (!is_on()) return;
    write_through_.store(true, std::memory_order_relaxed);
    bool keep = false;
    std::uint64_t recoverable = 0;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      if (!p.attached) return;
      if (!drain_or_leave(p, recoverable)) keep = true;
      open_lanes(p);
      // A thread that still runs may be storing a record: that one can be recovered.
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      if (tid != 0 && tid != thread_id() && !thread_is_dead(tid)) keep = true;
    });
    storage_.close_files(keep, losses_.of_recording(dropped()));
    storage_.leave_leftovers();
    losses_.report(dropped(), recoverable);
  }

  void flush() noexcept {
    const signals_blocked quiet;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      if (p.attached) drain(p);
    });
  }

  std::uint64_t dropped() const noexcept {
    std::uint64_t sum = losses_.counted();
    producers_.for_each([&](producer& p) { sum += p.dropped.load(std::memory_order_relaxed); });
    return sum;
  }

  std::uint32_t intern(std::string_view name) noexcept {
    if (this_thread_forks) return unnamed_id;  // and its record will be dropped
    const std::uint32_t id = names_.intern(name);
    if (LOTUS_DETAIL_UNLIKELY(id == unnamed_id)) {
      if (is_on()) losses_.unnamed(names_.size());
    } else if (!storage_.keeps_name(id)) {
      const signals_blocked quiet;
      storage_.keep_names();
    }
    return id;
  }

  /// What is told of the running recording; null where there is none.
  losses* losses_if_on() noexcept { return is_on() ? &losses_ : nullptr; }

  /// Returns whose the records of this thread were so far.
  std::uint32_t enter_loader(std::uint32_t loader) noexcept {
    producer* const p = this_thread();
    if (p == nullptr) return 0;
    if (p->storing.load(std::memory_order_relaxed) != 0 || p->loader == loader) return p->loader;
    const signals_blocked quiet;
    const locked guard{p->guard};
    const std::uint32_t before = p->loader;
    // Where there is no ring yet, that will begin with this one.
    if (p->attached && is_on()) {
      // Without this record all that follow would be the wrong one's: no choice to drop counts.
      if (p->ring->full() && drain(*p) != 0 && !storage_.set_aside(*p)) {
        drop(*p);
        return before;
      }
      p->ring->append({0, 0, {event_kind::loader, loader}});
      open_lanes(*p);
    }
    p->loader = loader;
    return before;
  }

  /// Where records are dropped, these are the first: the last quarter of a ring is not for them.
  off_cpu_time read_cpu(producer& p, cpu_watch& watch) noexcept {
    const off_cpu_time found = cpu_.read(p.cpu, watch);
    if (found.off_ns == 0 || !drops_when_full() || !p.attached) return found;
    if (p.ring->used() < std::uint64_t{p.ring->capacity} * 3 / 4) return found;
    drop(p);
    return {};
  }

  producer* this_thread() noexcept {
    if (this_thread_forks) return nullptr;
    const signals_blocked quiet;
    return producers_.for_this_thread(
        [&](producer& p) {
          const locked guard{p.guard};
          return !p.attached || (drain(p) == 0 && p.backlog_first == nullptr);
        },
        [&](producer& p) {
          const locked guard{p.guard};
          p.storing.store(0, std::memory_order_relaxed);
          losses_.count(p.dropped.exchange(0, std::memory_order_relaxed));
          p.loader = 0;
          cpu_.give_up(p.cpu);
          storage_.hand_over(p);
        });
  }

  void push_slow(producer& p, const record& r) noexcept {
    if (this_thread_forks) return drop(p);
    // A limit other than 0 means a ring that is merely full.
    if (p.limit.load(std::memory_order_relaxed) != 0 && drops_when_full()) return drop(p);
    const signals_blocked quiet;
    const locked guard{p.guard};
    if (!is_on()) return;
    if (!p.attached && !attach(p)) return drop(p);
    if (p.ring->full() && !make_room(p)) return drop(p);
    p.ring->append(r);
    if (write_through_.load(std::memory_order_relaxed)) drain(p);
  }

  /// From a signal handler that interrupted this thread while it was storing a record. A handler
  /// within a handler within these few instructions is dropped and counted.
  void push_nested(producer& p, const record& r) const noexcept {
    // Without a ring, before a thread's first record or where recording is off, there is no room.
    if (p.interrupt_limit.load(std::memory_order_acquire) == 0) {
      if (is_on()) drop(p);
      return;
    }
    if (p.storing.load(std::memory_order_relaxed) != 1) return drop(p);
    p.storing.store(2, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ring_block& ring = *p.ring;
    const std::uint64_t at = ring.published[1].load(std::memory_order_relaxed);
    if (at < p.interrupt_limit.load(std::memory_order_acquire)) {
      ring.slot(1, at) = r;
      ring.published[1].store(at + 1, std::memory_order_release);
    } else {
      drop(p);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    p.storing.store(1, std::memory_order_relaxed);
  }

  // --- fork: parent and child each go on with a whole recorder; store/recorder_forks.hpp

  void before_fork() noexcept;
  void after_fork() noexcept;
  /// Before after_fork().
  void become_child() noexcept;

 private:
  // --- producers; caller holds the guard

  bool drops_when_full() const noexcept {
    return when_full_.load(std::memory_order_relaxed) == full_ring::drop;
  }

  static void drop(producer& p) noexcept { p.dropped.fetch_add(1, std::memory_order_relaxed); }

  bool attach(producer& p) noexcept {
    if (!storage_.attach(p)) return false;
    open_lanes(p);
    if (!drain_thread_.runs()) drain_thread_.wake();
    return true;
  }

  /// Lets the owner store up to where the committed records leave room.
  void open_lanes(producer& p) const noexcept {
    const commit_point& c = p.ring->committed();
    const bool open = is_on() && !write_through_.load(std::memory_order_relaxed);
    p.interrupt_limit.store(is_on() ? c.tail[1] + interrupt_lane_records : 0,
                            std::memory_order_release);
    p.limit.store(open ? c.tail[0] + p.ring->capacity : 0, std::memory_order_release);
  }

  int drain(producer& p) noexcept {
    const int error = storage_.drain(p);
    open_lanes(p);
    return error;
  }

  /// For the last time. False where the logs did not take all.
  bool drain_or_leave(producer& p, std::uint64_t& recoverable) noexcept {
    if (drain(p) == 0) return true;
    const unwritten_records left = storage_.leave(p);
    recoverable += left.recoverable;
    losses_.count(left.lost);
    return false;
  }

  /// Room in a full ring.
  bool make_room(producer& p) noexcept {
    if (drops_when_full()) return false;
    p.drained_itself.store(true, std::memory_order_relaxed);
    if (drain(p) == 0) return true;
    if (!storage_.set_aside(p)) return false;
    open_lanes(p);
    return true;
  }

  std::uint32_t drain_round() noexcept {
    if (!is_on()) return 0;
    producers_.for_each([&](producer& p) {
      // A thread that fills its ring between two rounds drains it itself, with the records still in
      // its cache: to come between would only make it wait.
      if (p.drained_itself.exchange(false, std::memory_order_relaxed)) return;
      const locked guard{p.guard};
      if (p.attached) drain(p);
    });
    return pace_.next_ms(storage_.recover_leftovers());
  }

  std::atomic<bool> recording_{false};
  std::atomic<bool> write_through_{false};
  std::atomic<full_ring> when_full_{full_ring::drain};
  drain_pace pace_;

  message_handler messages_;
  losses losses_;
  session_clock clock_;
  cpu_clock cpu_;
  name_table names_;
  producer_list producers_;
  storage storage_{clock_, names_, cpu_};
  drain_thread drain_thread_{
      [](void* self) noexcept { return static_cast<recorder*>(self)->drain_round(); }, this};
  std::uint32_t forking_tid_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDER_HPP
