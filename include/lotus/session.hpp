// Start, stop, flush; threads come and go; the drain; fork; answers thread.hpp's rare calls.
#ifndef LOTUS_SESSION_HPP
#define LOTUS_SESSION_HPP

#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>

#include "lotus/backlog.hpp"
#include "lotus/clock.hpp"
#include "lotus/config.hpp"
#include "lotus/directory.hpp"
#include "lotus/drain.hpp"
#include "lotus/layout.hpp"
#include "lotus/lock.hpp"
#include "lotus/names.hpp"
#include "lotus/options.hpp"
#include "lotus/process.hpp"
#include "lotus/recover.hpp"
#include "lotus/ring_file.hpp"
#include "lotus/thread.hpp"
#include "lotus/writer.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The session of the process. One, made at first use, never destroyed.
///
/// Every entry runs with signals blocked. Locks, outermost first: control_, producers_lock_, a
/// producer's guard, file_lock_, clock_lock_, and the leaves (modules_, names, buffers).
class LOTUS_DETAIL_PER_MODULE session {
 public:
  session() noexcept : hardware_clock_{hardware_ticks_invariant()} {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  }

  static session& instance() noexcept { return *instance_; }
  static const services* make() noexcept;

  // --- shared objects

  void join(module_state& m, bool environment_counts) noexcept {
    const signals_blocked quiet;
    {
      const locked hold{control_};
      if (!pinned_) {
        pinned_ = true;
        pin_module_of(&instance_);
      }
      if (environment_counts && !environment_read_) {
        environment_read_ = true;
        const char* log_file = secure_getenv("LOTUS_LOG_FILE");
        if (log_file != nullptr && *log_file != '\0') {
          options chosen;
          chosen.log_file = log_file;
          started_by_environment_ = begin(chosen);
        }
      }
    }
    const locked hold{modules_lock_};
    if (m.hub.load(std::memory_order_relaxed) == nullptr) {
      m.next = modules_;
      modules_ = &m;
    }
    m.hardware_clock.store(hardware_clock_, std::memory_order_relaxed);
    m.hub.store(&table_, std::memory_order_release);
    m.mode.store(mode(), std::memory_order_release);
  }

  void leave(module_state& m) noexcept {
    const signals_blocked quiet;
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
    const locked hold{control_};
    environment_read_ = true;
    if (recording_.load(std::memory_order_relaxed)) {
      if (!started_by_environment_) return already_recording(chosen);
      end();
    }
    started_by_environment_ = false;
    return begin(chosen);
  }

  void stop() noexcept {
    const signals_blocked quiet;
    const locked hold{control_};
    environment_read_ = true;
    if (recording_.load(std::memory_order_relaxed)) end();
  }

  void flush() noexcept {
    const signals_blocked quiet;
    for_each_producer([&](producer& p) {
      const locked hold{p.guard};
      if (p.attached) drain(p);
    });
  }

  std::uint64_t dropped() const noexcept {
    std::uint64_t sum = dropped_before_.load(std::memory_order_relaxed);
    for_each_producer([&](producer& p) { sum += p.dropped.load(std::memory_order_relaxed); });
    return sum;
  }

  std::uint32_t intern(std::string_view name) noexcept {
    const std::uint32_t id = names_.intern(name);
    if (id > names_stored_.load(std::memory_order_acquire)) {
      const signals_blocked quiet;
      const locked hold{file_lock_};
      store_names();
    }
    return id;
  }

  // --- threads

  producer* this_thread() noexcept {
    const signals_blocked quiet;
    const locked hold{producers_lock_};
    const auto tid = static_cast<std::uint32_t>(gettid());
    // One with our thread id is ours through another shared object, or that of a dead thread whose
    // id and logs we inherit: two rings must never feed one log.
    if (producer* p = find_producer(tid)) return p;
    producer* p = find_producer(0);
    if (p == nullptr && ++attached_since_reaping_ > producer_count_ / 2) {
      attached_since_reaping_ = 0;
      reap();
      p = find_producer(0);
    }
    if (p == nullptr) p = add_producer();
    if (p != nullptr) take_over(*p, tid);
    return p;
  }

  void push_slow(producer& p, const record& r) noexcept {
    // A limit other than 0 means a ring that is merely full.
    if (when_full_ == full_ring::drop && p.limit.load(std::memory_order_relaxed) != 0) {
      return drop(p);
    }
    const signals_blocked quiet;
    const locked hold{p.guard};
    if (!recording_.load(std::memory_order_acquire)) return;
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
  recording mode() const noexcept {
    return recording_.load(std::memory_order_relaxed) ? recording::on : recording::off;
  }

  void set_modes() noexcept {
    const locked hold{modules_lock_};
    for (module_state* m = modules_; m != nullptr; m = m->next) {
      m->mode.store(mode(), std::memory_order_release);
    }
  }

  /// Says one line, printf-like.
  __attribute__((format(printf, 2, 3))) void say(const char* format, ...) noexcept {
    char line[4096 + 512] = "lotus: ";
    constexpr std::size_t head = 7;
    va_list values;
    va_start(values, format);
    const int n = std::vsnprintf(line + head, sizeof(line) - head - 1, format, values);
    va_end(values);
    if (n < 0) return;
    if (on_message_ != nullptr) return on_message_(line + head);
    const std::size_t length = std::strlen(line);
    line[length] = '\n';
    write_all(STDERR_FILENO, line, length + 1);
  }

  // --- starting and stopping; caller holds control_

  bool already_recording(const options& chosen) noexcept {
    log_location asked;
    if (asked.parse(chosen.log_file) == 0 &&
        std::strcmp(asked.directory, location_.directory) == 0 &&
        std::strcmp(asked.prefix, location_.prefix) == 0) {
      return true;
    }
    say("already recording to %s/%s_*; call lotus::stop() before lotus::start() with another name",
        location_.directory, location_.prefix);
    return false;
  }

  bool begin(const options& chosen) noexcept {
    on_message_ = chosen.on_message;
    int error = location_.parse(chosen.log_file);
    const int opened = error == 0 ? location_.open_directory() : -error;
    if (opened < 0) {
      if (!said_unwritable_) {
        say("cannot write %.*s_*: %s; this run is not recorded",
            static_cast<int>(chosen.log_file.size()), chosen.log_file.data(),
            std::strerror(-opened));
      }
      said_unwritable_ = true;
      return false;
    }
    said_unwritable_ = false;
    directory_ = opened;
    when_full_ = chosen.when_full;
    drain_interval_ms_ = chosen.drain_interval_ms > 0 ? chosen.drain_interval_ms : 1;
    backlog_most_bytes_ = chosen.backlog_bytes;
    ring_records_ = 64;
    while (ring_records_ < chosen.ring_records && ring_records_ < (1U << 24)) ring_records_ *= 2;
    dropped_before_.store(dropped(), std::memory_order_relaxed);
    for_each_producer([](producer& p) { p.dropped.store(0, std::memory_order_relaxed); });
    dropped_at_start_ = dropped_before_.load(std::memory_order_relaxed);
    said_disk_error_ = said_no_file_ = false;
    report_existing_logs();
    begin_clock();
    {
      const locked hold{file_lock_};
      make_ring_file();
    }
    write_through_.store(false, std::memory_order_relaxed);
    recording_.store(true, std::memory_order_release);
    set_modes();
    run_drain_thread();
    return true;
  }

  void end() noexcept {
    recording_.store(false, std::memory_order_release);
    set_modes();
    bool left_over = false;
    for_each_producer([&](producer& p) {
      const locked hold{p.guard};
      if (!p.attached) return;
      p.limit.store(0, std::memory_order_release);
      p.interrupt_limit.store(0, std::memory_order_release);
      if (drain(p) != 0) left_over = true;
      while (p.backlog_first != nullptr) {
        count_lost(p.backlog_first->ring);
        drop_oldest(p, backlog_bytes_);
      }
      close_logs(p);
      // The thread may be storing at this moment: the ring stays mapped until it attaches again.
      p.attached = false;
    });
    const locked hold{file_lock_};
    file_.finish(left_over);
    names_stored_.store(~std::uint32_t{0}, std::memory_order_release);
    close(directory_);
    directory_ = -1;
    const std::uint64_t lost = dropped() - dropped_at_start_;
    if (lost > 0) say("%llu records were dropped", static_cast<unsigned long long>(lost));
  }

  /// The process exits: from now on each record goes into its log at once, for nobody drains later.
  void finish() noexcept {
    const locked hold{control_};
    if (!recording_.load(std::memory_order_relaxed)) return;
    write_through_.store(true, std::memory_order_relaxed);
    bool others = false;
    for_each_producer([&](producer& p) {
      const locked guard{p.guard};
      if (!p.attached) return;
      p.limit.store(0, std::memory_order_release);
      if (drain(p) != 0) others = true;
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      if (tid != static_cast<std::uint32_t>(gettid()) && !thread_is_dead(tid)) others = true;
    });
    const locked guard{file_lock_};
    // Threads that still run may be in the middle of storing a record: that one can be recovered.
    file_.finish(others);
    names_stored_.store(~std::uint32_t{0}, std::memory_order_release);
    const std::uint64_t lost = dropped() - dropped_at_start_;
    if (lost > 0) say("%llu records were dropped", static_cast<unsigned long long>(lost));
  }

  void report_existing_logs() noexcept {
    unsigned count = 0;
    for_each_entry(directory_, [&](const char* name) {
      if (is_log_name(name, location_.prefix)) ++count;
    });
    if (count > 0) {
      say("%u logs of %s/%s_* exist already; new lines are appended to those of the same threads",
          count, location_.directory, location_.prefix);
    }
  }

  /// Makes the ring file, after what dead processes left has been put into the logs: this one may
  /// have a process or thread id of theirs. Caller holds file_lock_.
  void make_ring_file() noexcept {
    const recovery recovered = recover_directory(directory_, location_.prefix);
    if (recovered.records > 0) {
      say("%llu records of processes that died were recovered in %s",
          static_cast<unsigned long long>(recovered.records), location_.directory);
    }
    const int error = file_.create(directory_, location_.prefix, !hardware_clock_);
    ring_file_due_ = false;
    if (error != 0) return say_no_file(error);
    {
      const locked hold{clock_lock_};
      file_.store_clock(clock_);
    }
    store_names();
  }

  void say_no_file(int error) noexcept {
    if (!said_no_file_) {
      say("no ring file in %s: %s; what is not yet in the logs would be lost if the process were "
          "killed",
          location_.directory, std::strerror(error));
    }
    said_no_file_ = true;
  }

  /// Caller holds file_lock_.
  void store_names() noexcept {
    const bool stored = file_.store_names(names_);
    names_stored_.store(stored ? file_.names_stored() : ~std::uint32_t{0},
                        std::memory_order_release);
  }

  // --- producers

  template <class Each>
  void for_each_producer(Each&& each) const noexcept {
    for (producer* p = producers_.load(std::memory_order_acquire); p != nullptr; p = p->next) {
      each(*p);
    }
  }

  producer* find_producer(std::uint32_t tid) const noexcept {
    producer* p = producers_.load(std::memory_order_acquire);
    while (p != nullptr && p->tid.load(std::memory_order_relaxed) != tid) p = p->next;
    return p;
  }

  static bool thread_is_dead(std::uint32_t tid) noexcept {
    return syscall(SYS_tgkill, getpid(), static_cast<pid_t>(tid), 0) != 0 && errno == ESRCH;
  }

  /// Frees the producers of dead threads, their records drained. No hook runs when a thread ends,
  /// so the last of its thread_local destructors may still record. Caller holds producers_lock_.
  void reap() noexcept {
    for_each_producer([&](producer& p) {
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      if (tid == 0 || !thread_is_dead(tid)) return;
      const locked hold{p.guard};
      if (p.attached && (drain(p) != 0 || p.backlog_first != nullptr)) return;
      close_logs(p);
      p.tid.store(0, std::memory_order_relaxed);
    });
  }

  producer* add_producer() noexcept {
    if (spare_producers_ == 0) {
      spare_ = static_cast<producer*>(map_memory(producers_at_once * sizeof(producer)));
      if (spare_ == nullptr) return nullptr;
      spare_producers_ = producers_at_once;
    }
    auto* p = new (spare_++) producer;
    --spare_producers_;
    ++producer_count_;
    p->next = producers_.load(std::memory_order_relaxed);
    producers_.store(p, std::memory_order_release);
    return p;
  }

  void take_over(producer& p, std::uint32_t tid) noexcept {
    const locked hold{p.guard};
    p.tid.store(tid, std::memory_order_relaxed);
    p.storing.store(0, std::memory_order_relaxed);
    dropped_before_.fetch_add(p.dropped.exchange(0, std::memory_order_relaxed),
                              std::memory_order_relaxed);
    if (!p.attached) return;
    p.ring->tid.store(tid, std::memory_order_relaxed);
    commit_point c = p.ring->committed();
    for (log_position& log : c.logs) log = {};
    p.ring->commit(c);
  }

  /// Gives the producer a ring of this session. Caller holds its guard and is its thread.
  bool attach(producer& p) noexcept {
    const locked hold{file_lock_};
    if (p.ring != nullptr) ring_file::unmap(p.ring);
    p.ring = nullptr;
    if (ring_file_due_) make_ring_file();
    bool in_file = false;
    ring_block* ring =
        file_.add_ring(p.tid.load(std::memory_order_relaxed), ring_records_, in_file);
    if (ring == nullptr) return false;
    if (!in_file && file_.exists()) say_no_file(ENOSPC);
    p.ring = ring;
    p.attached = true;
    p.slots = ring->slots();
    p.mask = ring->capacity - 1;
    p.published = &ring->published[0];
    open_lanes(p);
    run_drain_thread();
    return true;
  }

  /// Lets the owner store up to where the committed records leave room.
  void open_lanes(producer& p) const noexcept {
    const commit_point& c = p.ring->committed();
    p.interrupt_limit.store(c.tail[1] + interrupt_lane_records, std::memory_order_release);
    const bool open = recording_.load(std::memory_order_relaxed) &&
                      !write_through_.load(std::memory_order_relaxed);
    p.limit.store(open ? c.tail[0] + p.ring->capacity : 0, std::memory_order_release);
  }

  static void drop(producer& p) noexcept { p.dropped.fetch_add(1, std::memory_order_relaxed); }

  void count_lost(const ring_block& ring) noexcept {
    const lane_heads heads{ring};
    for (std::size_t i = 0; i < lanes; ++i) {
      dropped_before_.fetch_add(heads.head[i] - ring.committed().tail[i],
                                std::memory_order_relaxed);
    }
  }

  // --- draining

  /// Room in a full ring. Caller holds the guard.
  bool make_room(producer& p) noexcept {
    if (when_full_ == full_ring::drop) return false;
    p.drained_itself.store(true, std::memory_order_relaxed);
    if (drain(p) == 0) return true;
    if (!set_aside(p, backlog_bytes_, backlog_most_bytes_)) return false;
    open_lanes(p);
    return true;
  }

  /// Writes all complete records of `p` to its logs. Caller holds the guard. Returns 0 or errno;
  /// then what could not be written stays.
  int drain(producer& p) noexcept {
    ring_block& ring = *p.ring;
    const lane_heads heads{ring};
    if (!heads.beyond(ring.committed()) && p.backlog_first == nullptr) return 0;
    drain_buffer* buffer = take_buffer();
    if (buffer == nullptr) return ENOMEM;
    tie_clock();
    const tick_converter clock{clock_, &clock_lock_};
    const auto names = [&](std::uint64_t id) {
      return names_.entry(static_cast<std::uint32_t>(id)).line_start();
    };
    log_appender logs{directory_, location_.prefix, ring, p.logs};
    int error = 0;
    while (error == 0 && p.backlog_first != nullptr) {
      ring_block& chunk = p.backlog_first->ring;
      backlog_sink sink{chunk, logs};
      error = drain_ring(chunk, lane_heads{chunk}, clock, names, sink, *buffer);
      if (error == 0) drop_oldest(p, backlog_bytes_);
    }
    if (error == 0) error = drain_ring(ring, heads, clock, names, logs, *buffer);
    give_back(buffer);
    keep_or_close_logs(p);
    open_lanes(p);
    report_disk(error);
    return error;
  }

  /// Opening for each drain would cost a file system more than the writing; but descriptors are the
  /// program's, so that only some threads' logs stay open.
  void keep_or_close_logs(producer& p) noexcept {
    if (p.logs_kept_open) return;
    p.logs_kept_open = kept_open_.fetch_add(1, std::memory_order_relaxed) < max_kept_open;
    if (p.logs_kept_open) return;
    kept_open_.fetch_sub(1, std::memory_order_relaxed);
    p.logs.close_all();
  }

  void close_logs(producer& p) noexcept {
    p.logs.close_all();
    if (p.logs_kept_open) kept_open_.fetch_sub(1, std::memory_order_relaxed);
    p.logs_kept_open = false;
  }

  void report_disk(int error) noexcept {
    if ((error != 0) == said_disk_error_.load(std::memory_order_relaxed)) return;
    if (said_disk_error_.exchange(error != 0) == (error != 0)) return;
    if (error != 0) {
      say("cannot append to the logs in %s: %s; records are kept in memory meanwhile",
          location_.directory, std::strerror(error));
    } else {
      say("the logs in %s can be written again", location_.directory);
    }
  }

  drain_buffer* take_buffer() noexcept {
    const locked hold{buffers_lock_};
    if (spare_buffer_count_ > 0) return spare_buffers_[--spare_buffer_count_];
    return static_cast<drain_buffer*>(map_memory(sizeof(drain_buffer)));
  }

  void give_back(drain_buffer* buffer) noexcept {
    const locked hold{buffers_lock_};
    if (spare_buffer_count_ < max_spare_buffers) {
      spare_buffers_[spare_buffer_count_++] = buffer;
    } else {
      munmap(buffer, sizeof(drain_buffer));
    }
  }

  // --- the clock

  std::uint64_t ticks() const noexcept {
    return hardware_clock_ ? hardware_ticks()
                           : static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
  }

  /// The three clocks at one moment: the tightest of a few readings.
  clock_anchor read_anchor() const noexcept {
    clock_anchor best{};
    std::uint64_t tightest = ~std::uint64_t{0};
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t before = ticks();
      const std::int64_t realtime_ns = clock_ns(CLOCK_REALTIME);
      const std::uint64_t between = ticks();
      const std::int64_t monotonic_ns = clock_ns(CLOCK_MONOTONIC);
      const std::uint64_t after = ticks();
      if (after - before >= tightest) continue;
      tightest = after - before;
      best = {before + (between - before) / 2, monotonic_ns, realtime_ns};
    }
    return best;
  }

  /// A millisecond gives the rate to some 20 ppm; the first tie, 5 ms later, improves it.
  void begin_clock() noexcept {
    const locked hold{clock_lock_};
    const clock_anchor first = read_anchor();
    while (clock_ns(CLOCK_MONOTONIC) - first.monotonic_ns < 1'000'000) {
    }
    clock_.begin(first, read_anchor());
    ties_ = 0;
    last_tie_ns_ = first.monotonic_ns;
  }

  void tie_clock() noexcept {
    const std::int64_t due_ns = ties_.load(std::memory_order_relaxed) < 3 ? 5'000'000 : 90'000'000;
    if (clock_ns(CLOCK_MONOTONIC) - last_tie_ns_.load(std::memory_order_relaxed) < due_ns) return;
    std::int64_t stepped_ns = 0;
    {
      const locked hold_file{file_lock_};
      const locked hold{clock_lock_};
      const clock_anchor now = read_anchor();
      if (now.monotonic_ns - last_tie_ns_.load(std::memory_order_relaxed) < due_ns) return;
      stepped_ns = clock_.tie(now);
      last_tie_ns_.store(now.monotonic_ns, std::memory_order_relaxed);
      ties_.fetch_add(1, std::memory_order_relaxed);
      file_.store_clock(clock_);
    }
    if (stepped_ns != 0) {
      say("the wall clock was stepped by %.3f s; %s", static_cast<double>(stepped_ns) * 1e-9,
          stepped_ns > 0 ? "times go on from the new one"
                         : "times go on as before, so that they stay in order");
    }
  }

  // --- the drain thread: a convenience that keeps rings from filling, nothing depends on it

  void run_drain_thread() noexcept {
    wake_.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &wake_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    if (drain_thread_runs_.exchange(true)) return;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    const int failed = pthread_create(&thread, &detached, drain_loop, this);
    pthread_attr_destroy(&detached);
    if (failed != 0) drain_thread_runs_.store(false);
  }

  static void* drain_loop(void* self) noexcept {
    pthread_setname_np(pthread_self(), "lotus-drain");
    static_cast<session*>(self)->drain_for_ever();
    return nullptr;
  }

  void drain_for_ever() noexcept {
    std::uint32_t pause_ms = 5;  // the clock's rate wants an early tie
    for (;;) {
      const std::uint32_t seen = wake_.load(std::memory_order_acquire);
      const bool idle = !recording_.load(std::memory_order_acquire);
      const timespec pause{pause_ms / 1000, static_cast<long>(pause_ms % 1000) * 1'000'000};
      syscall(SYS_futex, &wake_, FUTEX_WAIT_PRIVATE, seen, idle ? nullptr : &pause, nullptr, 0);
      for_each_producer([&](producer& p) {
        // A thread that fills its ring between two rounds drains it itself, with the records still
        // in its cache: to come between would only make it wait.
        if (p.drained_itself.exchange(false, std::memory_order_relaxed)) return;
        const locked hold{p.guard};
        if (p.attached) drain(p);
      });
      pause_ms = pause_ms * 4 < drain_interval_ms_ ? pause_ms * 4 : drain_interval_ms_;
    }
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
    s.modules_lock_.lock();
    s.producers_lock_.lock();
    s.for_each_producer([](producer& p) { p.guard.lock(); });
    s.file_lock_.lock();
    s.clock_lock_.lock();
    s.buffers_lock_.lock();
    s.names_.fork_lock().lock();
    s.forking_tid_ = static_cast<std::uint32_t>(gettid());
  }

  static void after_fork_in_parent() noexcept { instance().unlock_after_fork(); }

  static void after_fork_in_child() noexcept {
    session& s = instance();
    s.for_each_producer([&](producer& p) {
      // The ring is the parent's, and so is what is in it.
      if (p.ring != nullptr) ring_file::unmap(p.ring);
      p.ring = nullptr;
      p.attached = false;
      p.published = &p.none_published;
      p.limit.store(0, std::memory_order_relaxed);
      p.interrupt_limit.store(0, std::memory_order_relaxed);
      p.dropped.store(0, std::memory_order_relaxed);
      while (p.backlog_first != nullptr) drop_oldest(p, s.backlog_bytes_);
      s.close_logs(p);
      const bool forked = p.tid.load(std::memory_order_relaxed) == s.forking_tid_;
      p.tid.store(forked ? static_cast<std::uint32_t>(gettid()) : 0, std::memory_order_relaxed);
    });
    s.file_.forget();
    s.ring_file_due_ = true;
    s.names_stored_.store(~std::uint32_t{0}, std::memory_order_relaxed);
    s.dropped_before_.store(0, std::memory_order_relaxed);
    s.dropped_at_start_ = 0;
    s.drain_thread_runs_.store(false, std::memory_order_relaxed);
    s.unlock_after_fork();
  }

  void unlock_after_fork() noexcept {
    names_.fork_lock().unlock();
    buffers_lock_.unlock();
    clock_lock_.unlock();
    file_lock_.unlock();
    for_each_producer([](producer& p) { p.guard.unlock(); });
    producers_lock_.unlock();
    modules_lock_.unlock();
    const sigset_t before = signals_at_fork_;
    control_.unlock();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  static constexpr std::size_t producers_at_once = 64;
  static constexpr std::size_t max_spare_buffers = 4;
  static constexpr std::uint32_t max_kept_open = 64;  ///< threads, of two logs each

  static session* instance_;
  static const services table_;

  mutex control_;
  bool pinned_ = false;
  bool environment_read_ = false;
  bool started_by_environment_ = false;
  bool said_unwritable_ = false;
  bool said_no_file_ = false;
  std::atomic<bool> said_disk_error_{false};
  const bool hardware_clock_;
  std::atomic<bool> recording_{false};
  std::atomic<bool> write_through_{false};
  void (*on_message_)(const char*) = nullptr;
  full_ring when_full_ = full_ring::drain;
  std::uint32_t ring_records_ = 0;
  std::uint32_t drain_interval_ms_ = 0;
  log_location location_{};
  int directory_ = -1;

  mutex modules_lock_;
  module_state* modules_ = nullptr;

  mutex producers_lock_;
  std::atomic<producer*> producers_{nullptr};
  producer* spare_ = nullptr;
  std::size_t spare_producers_ = 0;
  std::size_t producer_count_ = 0;
  std::size_t attached_since_reaping_ = 0;
  std::atomic<std::uint64_t> dropped_before_{0};  ///< by producers that are no more
  std::uint64_t dropped_at_start_ = 0;

  mutex file_lock_;
  ring_file file_;
  bool ring_file_due_ = false;
  std::atomic<std::uint32_t> names_stored_{~std::uint32_t{0}};
  std::atomic<std::size_t> backlog_bytes_{0};
  std::size_t backlog_most_bytes_ = 0;
  std::atomic<std::uint32_t> kept_open_{0};

  mutex clock_lock_;
  clock_map clock_{};
  std::atomic<std::int64_t> last_tie_ns_{0};
  std::atomic<std::uint32_t> ties_{0};

  mutex buffers_lock_;
  drain_buffer* spare_buffers_[max_spare_buffers] = {};
  std::size_t spare_buffer_count_ = 0;

  name_table names_;

  std::atomic<std::uint32_t> wake_{0};
  std::atomic<bool> drain_thread_runs_{false};

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
  static_assert(sizeof(session) < (std::size_t{1} << 20));
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
inline bool start(std::string_view log_file) noexcept {
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
