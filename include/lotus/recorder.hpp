// Takes the records of all threads and sees that they reach the logs.
#ifndef LOTUS_RECORDER_HPP
#define LOTUS_RECORDER_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/drain_thread.hpp"
#include "lotus/loader.hpp"
#include "lotus/lock.hpp"
#include "lotus/message.hpp"
#include "lotus/names.hpp"
#include "lotus/options.hpp"
#include "lotus/producers.hpp"
#include "lotus/record.hpp"
#include "lotus/session_clock.hpp"
#include "lotus/storage.hpp"
#include "lotus/thread.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Every entry blocks signals itself, but for those that the session calls one at a time, with
/// signals blocked: open, close, close_at_exit and the three of a fork.
///
/// Locks, outermost first: the list of producers, a producer's guard, the ring file, the clock;
/// names and buffers are leaves.
class LOTUS_DETAIL_PER_MODULE recorder {
 public:
  bool is_on() const noexcept { return recording_.load(std::memory_order_acquire); }
  bool hardware_clock() const noexcept { return clock_.hardware(); }
  const log_location& location() const noexcept { return storage_.location(); }
  const name_entry& name(std::uint32_t id) const noexcept { return names_.entry(id); }
  messenger& messages() noexcept { return messages_; }

  /// False, after saying why, when the directory cannot be written.
  bool open(const options& chosen) noexcept {
    messages_.use(chosen.on_message);
    clock_.begin();
    if (storage_.open(chosen) != 0) return false;
    when_full_.store(chosen.when_full, std::memory_order_relaxed);
    drain_interval_ms_.store(chosen.drain_interval_ms > 0 ? chosen.drain_interval_ms : 1,
                             std::memory_order_relaxed);
    pause_ms_.store(5, std::memory_order_relaxed);
    dropped_at_start_ = dropped();
    write_through_.store(false, std::memory_order_relaxed);
    recording_.store(true, std::memory_order_release);
    drain_thread_.wake();
    return true;
  }

  void close() noexcept {
    recording_.store(false, std::memory_order_release);
    bool left_over = false;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      if (!p.attached) return;
      if (drain(p) != 0) left_over = true;
      dropped_before_.fetch_add(storage_.detach(p), std::memory_order_relaxed);
    });
    storage_.close_files(left_over, dropped() - dropped_at_start_);
    storage_.close();
    report_dropped();
  }

  /// The process exits: from now on each record goes into its log at once, for nobody drains later.
  void close_at_exit() noexcept {
    if (!is_on()) return;
    write_through_.store(true, std::memory_order_relaxed);
    bool keep = false;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      if (!p.attached) return;
      if (drain(p) != 0) keep = true;
      open_lanes(p);
      // A thread that still runs may be storing a record: that one can be recovered.
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      if (tid != 0 && tid != thread_id() && !thread_is_dead(tid)) keep = true;
    });
    storage_.close_files(keep, dropped() - dropped_at_start_);
    report_dropped();
  }

  void flush() noexcept {
    const signals_blocked quiet;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      if (p.attached) drain(p);
    });
  }

  std::uint64_t dropped() const noexcept {
    std::uint64_t sum = dropped_before_.load(std::memory_order_relaxed);
    producers_.for_each([&](producer& p) { sum += p.dropped.load(std::memory_order_relaxed); });
    return sum;
  }

  std::uint32_t intern(std::string_view name) noexcept {
    if (this_thread_forks) return 0;
    const std::uint32_t id = names_.intern(name);
    if (!storage_.keeps_name(id)) {
      const signals_blocked quiet;
      storage_.keep_names();
    }
    return id;
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
          dropped_before_.fetch_add(p.dropped.exchange(0, std::memory_order_relaxed),
                                    std::memory_order_relaxed);
          storage_.hand_over(p);
        });
  }

  void push_slow(producer& p, const record& r) noexcept {
    if (this_thread_forks) return drop(p);
    // A limit other than 0 means a ring that is merely full.
    const bool full = p.limit.load(std::memory_order_relaxed) != 0;
    if (full && drops_when_full()) return drop(p);
    const signals_blocked quiet;
    const locked guard{p.guard};
    if (!is_on()) return;
    if (!p.attached && !attach(p)) return drop(p);
    ring_block& ring = *p.ring;
    const std::uint64_t at = ring.published[0].load(std::memory_order_relaxed);
    if (at - ring.committed().tail[0] >= ring.capacity && !make_room(p)) return drop(p);
    ring.slot(0, at) = r;
    ring.published[0].store(at + 1, std::memory_order_release);
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

  // --- fork: parent and child each go on with a whole recorder

  void before_fork() noexcept {
    forking_tid_ = thread_id();
    producers_.fork_lock().lock();
    producers_.for_each([](producer& p) { p.guard.lock(); });
    storage_.file_fork_lock().lock();
    clock_.fork_lock().lock();
    names_.fork_lock().lock();
    storage_.buffers_fork_lock().lock();
    producers_.for_each([&](producer& p) {
      if (p.tid.load(std::memory_order_relaxed) != forking_tid_) return;
      p.limit.store(0, std::memory_order_relaxed);
      p.interrupt_limit.store(0, std::memory_order_relaxed);
    });
  }

  void after_fork() noexcept {
    producers_.for_each([&](producer& p) {
      if (p.attached && p.tid.load(std::memory_order_relaxed) == forking_tid_) open_lanes(p);
    });
    storage_.buffers_fork_lock().unlock();
    names_.fork_lock().unlock();
    clock_.fork_lock().unlock();
    storage_.file_fork_lock().unlock();
    producers_.for_each([](producer& p) { p.guard.unlock(); });
    producers_.fork_lock().unlock();
  }

  /// Before after_fork().
  void become_child() noexcept {
    producers_.for_each([&](producer& p) {
      storage_.after_fork_in_child(p);
      p.limit.store(0, std::memory_order_relaxed);
      p.interrupt_limit.store(0, std::memory_order_relaxed);
      p.dropped.store(0, std::memory_order_relaxed);
      const bool forked = p.tid.load(std::memory_order_relaxed) == forking_tid_;
      p.tid.store(forked ? thread_id() : 0, std::memory_order_relaxed);
    });
    storage_.after_fork_in_child();
    dropped_before_.store(0, std::memory_order_relaxed);
    dropped_at_start_ = 0;
    drain_thread_.forget();
  }

 private:
  void report_dropped() noexcept {
    const std::uint64_t lost = dropped() - dropped_at_start_;
    if (lost > 0) messages_.say("%llu records were dropped", static_cast<unsigned long long>(lost));
  }

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
    // 5, 20, 80 ms: the clock's rate wants early ties. Then as the program chose.
    const std::uint32_t early_ms = pause_ms_.load(std::memory_order_relaxed);
    const std::uint32_t most_ms = drain_interval_ms_.load(std::memory_order_relaxed);
    const std::uint32_t pause_ms = early_ms < 100 && early_ms < most_ms ? early_ms : most_ms;
    pause_ms_.store(early_ms < 100 ? early_ms * 4 : early_ms, std::memory_order_relaxed);
    return pause_ms;
  }

  std::atomic<bool> recording_{false};
  std::atomic<bool> write_through_{false};
  std::atomic<full_ring> when_full_{full_ring::drain};
  std::atomic<std::uint32_t> drain_interval_ms_{0};
  std::atomic<std::uint32_t> pause_ms_{0};
  std::atomic<std::uint64_t> dropped_before_{0};  ///< by producers that are others now
  std::uint64_t dropped_at_start_ = 0;

  messenger messages_;
  session_clock clock_;
  name_table names_;
  producer_list producers_;
  storage storage_{messages_, clock_, names_};
  drain_thread drain_thread_{
      [](void* self) noexcept { return static_cast<recorder*>(self)->drain_round(); }, this};
  std::uint32_t forking_tid_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORDER_HPP
