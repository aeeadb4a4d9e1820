// Start, stop, flush; threads come and go; fork; answers thread.hpp's rare calls.
#ifndef LOTUS_SESSION_HPP
#define LOTUS_SESSION_HPP

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/drain_thread.hpp"
#include "lotus/lock.hpp"
#include "lotus/message.hpp"
#include "lotus/names.hpp"
#include "lotus/options.hpp"
#include "lotus/process.hpp"
#include "lotus/producers.hpp"
#include "lotus/session_clock.hpp"
#include "lotus/storage.hpp"
#include "lotus/thread.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The session of the process. One, made at first use, never destroyed.
///
/// Every entry runs with signals blocked. Locks, outermost first: control, the list of producers, a
/// producer's guard, the ring file, the clock; modules, names and buffers are leaves.
class LOTUS_DETAIL_PER_MODULE session {
 public:
  session() noexcept { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

  static session& instance() noexcept { return *instance_; }
  static const services* make() noexcept;

  // --- shared objects

  void join(module_state& m, bool environment_counts) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    if (!pinned_) pin_module_of(&instance_);
    pinned_ = true;
    if (environment_counts && !environment_read_) start_as_environment_says();
    const locked hold{modules_lock_};
    if (m.hub.load(std::memory_order_relaxed) == nullptr) {
      m.next = modules_;
      modules_ = &m;
    }
    m.hardware_clock.store(clock_.hardware(), std::memory_order_relaxed);
    m.hub.store(&table_, std::memory_order_release);
    m.mode.store(mode(), std::memory_order_release);
  }

  void leave(module_state& m) noexcept {
    const signals_blocked quiet;
    // That of the object with this code is destroyed when the process exits, for it is pinned.
    if (&m == &this_module) return finish();
    const locked hold{modules_lock_};
    for (module_state** at = &modules_; *at != nullptr; at = &(*at)->next) {
      if (*at == &m) {
        *at = m.next;
        return;
      }
    }
  }

  // --- the program's choices

  bool start(const options& chosen) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    if (is_on() && !started_by_environment_) return already_recording(chosen);
    if (is_on()) end();
    started_by_environment_ = false;
    return begin(chosen);
  }

  void stop() noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    if (is_on()) end();
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
    const std::uint32_t id = names_.intern(name);
    if (!storage_.keeps_name(id)) {
      const signals_blocked quiet;
      storage_.keep_names();
    }
    return id;
  }

  // --- threads

  producer* this_thread() noexcept {
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
  static void push_nested(producer& p, const record& r) noexcept {
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

 private:
  bool is_on() const noexcept { return recording_.load(std::memory_order_acquire); }
  recording mode() const noexcept { return is_on() ? recording::on : recording::off; }

  void set_modes() noexcept {
    const locked hold{modules_lock_};
    for (module_state* m = modules_; m != nullptr; m = m->next) {
      m->mode.store(mode(), std::memory_order_release);
    }
  }

  // --- starting and stopping; caller holds control_

  void start_as_environment_says() noexcept {
    environment_read_ = true;
    const char* log_file = secure_getenv("LOTUS_LOG_FILE");
    if (log_file == nullptr || *log_file == '\0') return;
    options chosen;
    chosen.log_file = log_file;
    started_by_environment_ = begin(chosen);
  }

  bool already_recording(const options& chosen) noexcept {
    log_location asked;
    const log_location& now = storage_.location();
    if (asked.parse(chosen.log_file) == 0 && std::strcmp(asked.directory, now.directory) == 0 &&
        std::strcmp(asked.prefix, now.prefix) == 0) {
      return true;
    }
    messages_.say("already recording to %s/%s_*; call lotus::stop() before another lotus::start()",
                  now.directory, now.prefix);
    return false;
  }

  bool begin(const options& chosen) noexcept {
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
    set_modes();
    drain_thread_.wake();
    return true;
  }

  void end() noexcept {
    recording_.store(false, std::memory_order_release);
    set_modes();
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
  void finish() noexcept {
    const locked control{control_};
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

  // --- fork: parent and child each go on with a whole session

  static void before_fork() noexcept {
    session& s = instance();
    sigset_t all;
    sigfillset(&all);
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s.control_.lock();
    s.signals_at_fork_ = before;
    s.forking_tid_ = thread_id();
    s.producers_.fork_lock().lock();
    s.producers_.for_each([](producer& p) { p.guard.lock(); });
    s.storage_.file_fork_lock().lock();
    s.clock_.fork_lock().lock();
    s.modules_lock_.lock();
    s.names_.fork_lock().lock();
    s.storage_.buffers_fork_lock().lock();
  }

  static void after_fork_in_parent() noexcept { instance().unlock_after_fork(); }

  static void after_fork_in_child() noexcept {
    session& s = instance();
    s.producers_.for_each([&](producer& p) {
      s.storage_.after_fork_in_child(p);
      p.limit.store(0, std::memory_order_relaxed);
      p.interrupt_limit.store(0, std::memory_order_relaxed);
      p.dropped.store(0, std::memory_order_relaxed);
      const bool forked = p.tid.load(std::memory_order_relaxed) == s.forking_tid_;
      p.tid.store(forked ? thread_id() : 0, std::memory_order_relaxed);
    });
    s.storage_.after_fork_in_child();
    s.dropped_before_.store(0, std::memory_order_relaxed);
    s.dropped_at_start_ = 0;
    s.drain_thread_.forget();
    s.unlock_after_fork();
  }

  void unlock_after_fork() noexcept {
    storage_.buffers_fork_lock().unlock();
    names_.fork_lock().unlock();
    modules_lock_.unlock();
    clock_.fork_lock().unlock();
    storage_.file_fork_lock().unlock();
    producers_.for_each([](producer& p) { p.guard.unlock(); });
    producers_.fork_lock().unlock();
    const sigset_t before = signals_at_fork_;
    control_.unlock();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  static session* instance_;
  static const services table_;

  mutex control_;
  bool pinned_ = false;
  bool environment_read_ = false;
  bool started_by_environment_ = false;
  std::atomic<bool> recording_{false};
  std::atomic<bool> write_through_{false};
  std::atomic<full_ring> when_full_{full_ring::drain};
  std::atomic<std::uint32_t> drain_interval_ms_{0};
  std::atomic<std::uint32_t> pause_ms_{0};
  std::atomic<std::uint64_t> dropped_before_{0};  ///< by producers that are others now
  std::uint64_t dropped_at_start_ = 0;

  mutex modules_lock_;
  module_state* modules_ = nullptr;

  messenger messages_;
  session_clock clock_;
  name_table names_;
  producer_list producers_;
  storage storage_{messages_, clock_, names_};
  drain_thread drain_thread_{
      [](void* self) noexcept { return static_cast<session*>(self)->drain_round(); }, this};

  sigset_t signals_at_fork_{};
  std::uint32_t forking_tid_ = 0;
};

inline session* session::instance_ = nullptr;

inline const services session::table_ = {
    []() noexcept { return instance().this_thread(); },
    [](producer& p, const record& r) noexcept { instance().push_slow(p, r); },
    [](producer& p, const record& r) noexcept { push_nested(p, r); },
    [](std::string_view name) noexcept { return instance().intern(name); },
    [](const options& chosen) noexcept { return instance().start(chosen); },
    []() noexcept { instance().stop(); },
    []() noexcept { instance().flush(); },
    []() noexcept { return instance().dropped(); },
    [](module_state& m, bool environment_counts) noexcept {
      instance().join(m, environment_counts);
    },
    [](module_state& m) noexcept { instance().leave(m); },
};

inline const services* session::make() noexcept {
  // Memory of its own, never freed: scopes may end after every static object is gone.
  instance_ = new (map_memory(sizeof(session))) session;
  return &table_;
}

inline const services* make_services() noexcept {
  return session::make();
}

}  // namespace detail

/// Starts recording; see options. Records what ends from now on, on every thread, also of other
/// shared objects of this process and of children it forks. At most 5 ms.
/// @return false, after saying why once, when the directory cannot be written; the program can go
/// on and just is not recorded. True also when this very recording runs already. Thread safety: all
/// of these functions.
inline bool start(const options& chosen = {}) noexcept {
  return detail::join_session(false).start(chosen);
}

/// Starts recording to `<log_file>_main_pid_<N>` and `<log_file>_worker_pid_<N>`.
inline bool start(std::string_view log_file) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen);
}

/// Writes every record that is complete by now to the logs. Not needed before exit.
inline void flush() noexcept {
  detail::join_session(false).flush();
}

/// Ends recording, everything written. Scopes still open are not recorded. start() may follow.
inline void stop() noexcept {
  detail::join_session(false).stop();
}

/// How many records this process has lost: dropped by choice (full_ring::drop), or because neither
/// disk nor memory could take them.
inline std::uint64_t dropped() noexcept {
  return detail::join_session(false).dropped();
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SESSION_HPP
