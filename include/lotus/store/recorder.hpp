// Provides the recorder, which owns all parts of a recording and begins and ends them in order.
#ifndef LOTUS_STORE_RECORDER_HPP
#define LOTUS_STORE_RECORDER_HPP

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lotus/aggregates/store/aggregate_store.hpp"
#include "lotus/base/clock.hpp"
#include "lotus/base/fork.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/options.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/message.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/background_thread.hpp"
#include "lotus/store/cpu_clock.hpp"
#include "lotus/store/fork_guard.hpp"
#include "lotus/store/limits/thread_start.hpp"
#include "lotus/store/losses.hpp"
#include "lotus/store/producers.hpp"
#include "lotus/store/recording_snapshots.hpp"
#include "lotus/store/recording_state.hpp"
#include "lotus/store/run/run_files.hpp"
#include "lotus/store/run/run_info.hpp"
#include "lotus/store/session_clock.hpp"
#include "lotus/store/slow_path.hpp"
#include "lotus/store/storage.hpp"
#include "lotus/waits/store/wait_sampler.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Does the recording for the session. The session calls open, close, close_at_exit and the three
/// fork functions one at a time, with signals blocked. All other functions block signals
/// themselves.
///
/// Lock order, outermost first: round_, the list of producers, a producer's guard, the sampler of
/// waits, aggregates, the ring file, leftovers, the clock. No other lock is taken while the lock of
/// names or buffers is held.
class LOTUS_DETAIL_PER_MODULE recorder {
 public:
  bool is_on() const noexcept { return state_.is_on(); }
  session_clock& clock() noexcept { return clock_; }
  const log_location& location() const noexcept { return files_.location(); }
  const name_entry& name(std::uint32_t id) const noexcept { return names_.entry(id); }
  const message_handler& messages() const noexcept { return messages_; }
  /// Returns the object that counts the recording's losses; null if nothing is being recorded.
  losses* losses_if_on() noexcept { return is_on() ? &losses_ : nullptr; }
  slow_path& slow() noexcept { return slow_; }

  // --- Beginning and ending a recording.

  /// Makes `handler` receive the messages from now on.
  void send_messages_to(void (*handler)(const char*)) noexcept { messages_.use(handler); }

  /// Begins a recording. Returns false, after reporting why, if the directory cannot be written.
  LOTUS_DETAIL_COLD bool open(const options& chosen) noexcept {
    const locked round{round_};
    if (!may_read_clocks()) {
      say("this program may not read clocks (PR_SET_TSC), and is not recorded");
      return false;
    }
    clock_.begin();
    cpu_.begin(chosen.cpu_time);
    if (rings_.open(chosen) != 0) return false;
    pace_.begin(chosen.drain_interval_ms);
    waits_.begin(chosen);
    snapshots_.begin(chosen);
    losses_.begin(dropped());
    state_.begin(chosen.when_full);
    drain_thread_.wake();
    return true;
  }

  LOTUS_DETAIL_COLD void close() noexcept {
    const locked round{round_};
    state_.end();
    waits_.end();
    follow_directory();
    bool keep = !aggregates_.write(producers_);
    std::uint64_t recoverable = 0;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      aggregate_store::retire(p);
      if (!p.attached) return;
      if (!drain_or_leave(p, recoverable)) keep = true;
      losses_.count(rings_.detach(p));
    });
    snapshots_.triggers().end();
    files_.close_files(keep, losses_.of_recording(dropped()), true);
    files_.close();
    cpu_.begin(false);
    losses_.report(dropped(), recoverable);
  }

  /// Called when the process exits. From then on each record is written to its log immediately,
  /// because no later drain follows.
  LOTUS_DETAIL_COLD void close_at_exit() noexcept {
    const locked round{round_};
    if (!is_on()) return;
    state_.write_through();
    waits_.end();
    follow_directory();
    bool keep = !aggregates_.write(producers_);
    std::uint64_t recoverable = 0;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      // A running thread may be storing a record or adding an aggregated call now. If such a thread
      // exists, the ring file is kept, so that the record or call can be recovered.
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      const bool runs = tid != 0 && tid != thread_id() && !thread_is_dead(tid);
      if (runs && (p.attached || aggregate_store::has_any(p))) keep = true;
      if (!p.attached) return;
      if (!drain_or_leave(p, recoverable)) keep = true;
      slow_.open_lanes(p);
    });
    files_.close_files(keep, losses_.of_recording(dropped()), false);
    files_.leave_leftovers();
    losses_.report(dropped(), recoverable);
  }

  void flush() noexcept {
    const signals_blocked quiet;
    producers_.for_each([this](producer& p) {
      const locked guard{p.guard};
      if (p.attached) slow_.drain(p);
    });
  }

  /// Takes a snapshot. Returns false, after reporting the reason, if no snapshot was taken.
  bool snapshot(std::string_view reason) noexcept {
    const signals_blocked quiet;
    const locked round{round_};
    if (is_on()) return snapshots_.take(reason, [this] { flush(); });
    say("no snapshot: nothing is being recorded");
    return false;
  }

  std::uint64_t dropped() const noexcept {
    std::uint64_t sum = losses_.counted();
    producers_.for_each([&](producer& p) { sum += p.dropped.load(std::memory_order_relaxed); });
    return sum;
  }

  // --- Functions that threads call; slow() provides more of them.

  /// Returns this thread's producer (the state of a thread); null if none can be created.
  /// @param begins  whether all spans that the thread will record begin after this call.
  LOTUS_DETAIL_COLD producer* this_thread(bool begins) noexcept {
    if (this_thread_forks) return nullptr;
    const signals_blocked quiet;
    thread_start started;
    return producers_.for_this_thread(
        [this](producer& p) {
          if (!p.guard.try_lock()) return false;
          const bool done = !p.attached || (slow_.drain(p) == 0 && p.backlog_first == nullptr);
          p.guard.unlock();
          return done;
        },
        [this, begins, &started](producer& p) {
          return begins || rings_.may_reuse_ring(p, started);
        },
        [this](producer& p) {
          const locked guard{p.guard};
          p.storing.store(0, std::memory_order_relaxed);
          p.storing_nested.store(0, std::memory_order_relaxed);
          losses_.count(p.dropped.exchange(0, std::memory_order_relaxed));
          p.loader = 0;
          cpu_.give_up(p.cpu);
          aggregate_store::prepare_for_next_thread(p);
          rings_.prepare_for_next_thread(p);
        });
  }

  std::uint32_t intern(std::string_view name) noexcept {
    if (this_thread_forks) return unnamed_id;  // the record with this name is dropped anyway
    const std::uint32_t id = names_.intern(name);
    if (LOTUS_DETAIL_UNLIKELY(id == unnamed_id)) {
      if (is_on()) losses_.unnamed(names_.size());
    } else if (!files_.keeps_name(id)) {
      const signals_blocked quiet;
      files_.keep_names();
    }
    return id;
  }

  /// Assigns this thread's records to a loader. Returns the thread's previous loader.
  std::uint32_t enter_loader(std::uint32_t loader) noexcept {
    producer* const p = this_thread(true);
    return p == nullptr ? 0 : slow_.enter_loader(*p, loader);
  }

  /// Converts the times of a span that is about to be recorded from ns of CLOCK_MONOTONIC to ticks.
  given_ticks ticks_of_span(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    const signals_blocked quiet;
    const session_clock::placed_span span = clock_.place(begin_ns, end_ns);
    // Before the span is recorded, the information file must state how far the span ends from now:
    // readers of the logs need this distance to know how far lines may be out of order.
    if (is_on() && !this_thread_forks) files_.report_span(span_distance{span.over_for_ns});
    return {span.begin_ticks, span.end_ticks};
  }

  // --- Functions that the session calls before and after a fork; see fork_guard.

  void before_fork() noexcept { forks_.before(); }
  void after_fork() noexcept { forks_.after(); }
  /// Discards the parent's state in a forked child. Must be called before after_fork().
  LOTUS_DETAIL_COLD void become_child() noexcept {
    forks_.become_child();
    losses_.forget();
    drain_thread_.forget();
    waits_.become_child();
  }

 private:
  /// See run_files::follow_directory().
  void follow_directory() noexcept {
    if (LOTUS_DETAIL_LIKELY(!files_.follow_directory())) return;
    producers_.for_each([this](producer& p) {
      const locked guard{p.guard};
      if (!p.attached) return;
      p.ring_in_file = false;
      p.ring_file_deleted = true;
      slow_.open_lanes(p);
      files_.add_thread(p.tid.load(std::memory_order_relaxed));
    });
  }

  /// Drains a thread for the last time. Returns false if some records are not in the logs. The
  /// caller holds the thread's guard.
  bool drain_or_leave(producer& p, std::uint64_t& recoverable) noexcept {
    if (slow_.drain(p) == 0) return true;
    const unwritten_records left = rings_.leave(p);
    recoverable += left.recoverable;
    losses_.count(left.lost);
    return false;
  }

  /// Runs one round of the drain thread. Returns the pause until the next round in ns.
  LOTUS_DETAIL_COLD std::uint64_t drain_round() noexcept {
    const locked round{round_};
    if (!is_on()) return 0;
    snapshot_triggers& triggers = snapshots_.triggers();
    const std::int64_t long_ns = triggers.wait_ns();
    const std::optional<std::uint64_t> long_ticks =
        long_ns == 0 ? std::nullopt : clock_.ticks_in(long_ns);
    const std::int64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    follow_directory();
    const bool roll_dead = rings_.retention().should_roll_dead();
    producers_.for_each([&](producer& p) {
      // A thread that has filled its ring since the last round drained the ring itself, while the
      // records were in its CPU cache. Draining the ring here too would only make that thread wait.
      const bool drained = p.drained_itself.exchange(false, std::memory_order_relaxed);
      if (drained && !long_ticks) return;
      const locked guard{p.guard};
      if (!p.attached) return;
      const std::uint64_t records = p.ring->used();
      if (!drained && slow_.drain(p) == 0 && roll_dead && is_free_or_dead(p)) {
        rings_.retention().roll_dead(files_.logs_folder(), p);
      }
      ring_file::make_writable(*p.ring, 2 * records);
      if (long_ticks) triggers.look_at_wait(p, *long_ticks);
    });
    rings_.keep_limits();
    files_.add_due_cpu_time();
    waits_.keep_running();
    files_.keep_own_blocks();
    files_.reports().round_took(files_.location(), clock_ns(CLOCK_MONOTONIC) - began_ns);
    snapshots_.take_if_triggered([this] { flush(); });
    snapshots_.answer_request();
    return std::uint64_t{pace_.next_ms(files_.recover_leftovers())} * 1'000'000;
  }

  /// Held by each drain round and snapshot, so that no recording begins or ends meanwhile.
  mutex round_;
  recording_state state_;
  message_handler messages_;
  losses losses_;
  session_clock clock_;
  cpu_clock cpu_;
  name_table names_;
  producer_list producers_;
  run_files files_{clock_, names_, cpu_};
  storage rings_{files_, clock_, names_};
  aggregate_store aggregates_{files_, clock_, names_};
  drain_pace pace_;
  background_thread drain_thread_{
      "lotus-drain",
      [](void* self) noexcept { return static_cast<recorder*>(self)->drain_round(); }, this};
  wait_sampler waits_{files_, clock_, producers_};
  slow_path slow_{state_, rings_, aggregates_, cpu_, drain_thread_};
  recording_snapshots snapshots_{files_, rings_, aggregates_, producers_, waits_};
  fork_guard forks_{{state_, round_, producers_, rings_, aggregates_, files_, clock_, names_, cpu_,
                     slow_, waits_}};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDER_HPP
