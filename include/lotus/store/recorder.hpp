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
#include "lotus/record/aggregates.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/message.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/producers.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/cpu_clock.hpp"
#include "lotus/store/drain_thread.hpp"
#include "lotus/store/losses.hpp"
#include "lotus/store/session_clock.hpp"
#include "lotus/store/snapshot.hpp"
#include "lotus/store/storage.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Every entry blocks signals itself, but for those that the session calls one at a time, with
/// signals blocked: open, close, close_at_exit and the three of a fork.
///
/// Locks, outermost first: the drain thread's round, the list of producers, a producer's guard, the
/// ring file, leftovers, the clock; names and buffers are leaves.
class LOTUS_DETAIL_PER_MODULE recorder {
 public:
  bool is_on() const noexcept { return recording_.load(std::memory_order_acquire); }
  session_clock& clock() noexcept { return clock_; }
  const log_location& location() const noexcept { return storage_.location(); }
  const name_entry& name(std::uint32_t id) const noexcept { return names_.entry(id); }
  const message_handler& messages() const noexcept { return messages_; }

  /// False, after saying why, when the directory cannot be written.
  bool open(const options& chosen) noexcept {
    const locked round{round_};
    messages_.use(chosen.on_message);
    clock_.begin();
    cpu_.begin(chosen.cpu_time);
    if (storage_.open(chosen) != 0) return false;
    when_full_.store(chosen.when_full, std::memory_order_relaxed);
    pace_.begin(chosen.drain_interval_ms);
    triggers_.begin(chosen);
    losses_.begin(dropped());
    write_through_.store(false, std::memory_order_relaxed);
    recording_.store(true, std::memory_order_release);
    drain_thread_.wake();
    return true;
  }

  // --- the end of a recording; store/recorder/recorder_ends.hpp

  void close() noexcept;
  /// The process exits: from now on each record goes into its log at once, for nobody drains later.
  void close_at_exit() noexcept;

  void flush() noexcept {
    const signals_blocked quiet;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      if (p.attached) drain(p);
    });
  }

  /// False, after saying why, where there is none. store/recorder/recorder_snapshots.hpp.
  bool snapshot(std::string_view reason) noexcept;

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
          storage::hand_over_aggregates(p);
          storage_.hand_over(p);
        });
  }

  // --- records that do not just go into the ring; store/recorder/recorder_pushes.hpp

  /// Of a span that is recorded next with these times of CLOCK_MONOTONIC.
  given_ticks ticks_of_span(std::int64_t begin_ns, std::int64_t end_ns) noexcept;
  void push_slow(producer& p, const record& r) noexcept;
  void push_nested(producer& p, const record& r) const noexcept;
  void get_ring(producer& p) noexcept;

  /// A call that has no room yet, nor may the one before it have. False where it is lost.
  bool aggregate_slow(producer& p, const aggregate_call& call) noexcept {
    const auto lose = [&p] {
      drop(p);
      return false;
    };
    if (this_thread_forks) return lose();
    const signals_blocked quiet;
    const locked guard{p.guard};
    if (!is_on()) return false;
    if (write_through_.load(std::memory_order_relaxed)) {
      storage_.write_late(p, call);
      return true;
    }
    return storage_.aggregate(p, call) || lose();
  }

  // --- fork: parent and child each go on with a whole recorder; store/recorder/recorder_forks.hpp

  void before_fork() noexcept;
  void after_fork() noexcept;
  /// Before after_fork().
  void become_child() noexcept;

 private:
  /// Caller holds round_.
  bool take_snapshot(std::string_view reason) noexcept;

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
    const std::uint64_t room = p.ring->capacity;
    p.last_limit.store(c.tail[0] + room, std::memory_order_release);
    p.limit.store(!open ? 0 : c.tail[0] + (drops_when_full() ? room / 2 : room),
                  std::memory_order_release);
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

  bool make_room(producer& p) noexcept;
  bool set_aside(producer& p) noexcept {
    if (!storage_.set_aside(p)) return false;
    open_lanes(p);
    return true;
  }
  bool push_or_drop(producer& p, const record& r) noexcept;

  /// False where they are in the ring file only.
  bool write_aggregates() noexcept;

  std::uint32_t drain_round() noexcept {
    const locked round{round_};
    if (!is_on()) return 0;
    const std::int64_t long_ns = triggers_.wait_ns();
    const std::uint64_t long_ticks = long_ns == 0 ? 0 : clock_.ticks_in(long_ns);
    producers_.for_each([&](producer& p) {
      // A thread that fills its ring between two rounds drains it itself, with the records still in
      // its cache: to come between would only make it wait.
      const bool drained = p.drained_itself.exchange(false, std::memory_order_relaxed);
      if (drained && long_ticks == 0) return;
      const locked guard{p.guard};
      if (!p.attached) return;
      if (!drained) drain(p);
      if (long_ticks != 0) triggers_.look_at_wait(p, long_ticks);
    });
    storage_.keep_limits();
    char reason[snapshot_place::most_reason_bytes + 1];
    if (triggers_.take(storage_.logs_folder(), reason)) take_snapshot(reason);
    return pace_.next_ms(storage_.recover_leftovers());
  }

  std::atomic<bool> recording_{false};
  std::atomic<bool> write_through_{false};
  std::atomic<full_ring> when_full_{full_ring::drain};
  mutex round_;  ///< none begins or ends while the drain thread looks, or a snapshot is made
  drain_pace pace_;
  snapshot_triggers triggers_;

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
