// Where a run's records go: rings, ring file and logs of one directory.
#ifndef LOTUS_STORAGE_HPP
#define LOTUS_STORAGE_HPP

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lotus/backlog.hpp"
#include "lotus/config.hpp"
#include "lotus/directory.hpp"
#include "lotus/drain.hpp"
#include "lotus/drain_buffers.hpp"
#include "lotus/layout.hpp"
#include "lotus/line.hpp"
#include "lotus/lock.hpp"
#include "lotus/message.hpp"
#include "lotus/names.hpp"
#include "lotus/options.hpp"
#include "lotus/recover.hpp"
#include "lotus/ring_file.hpp"
#include "lotus/run_info.hpp"
#include "lotus/session_clock.hpp"
#include "lotus/thread.hpp"
#include "lotus/writer.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: open, close and after_fork_in_child under the session's control lock; all else
/// any thread, with the guard of the producer it is about.
class LOTUS_DETAIL_PER_MODULE storage {
 public:
  storage(messenger& messages, session_clock& clock, name_table& names) noexcept
      : messages_{messages}, clock_{clock}, names_{names} {}

  const log_location& location() const noexcept { return location_; }

  /// Finds or makes the directory. Returns 0 or errno, after saying why once.
  int open(const options& chosen) noexcept {
    const int error = location_.parse(chosen.log_file);
    const int opened = error == 0 ? location_.open_directory() : -error;
    if (opened < 0) {
      if (!said_unwritable_) {
        messages_.say("cannot write %s_*: %s; this run is not recorded", chosen.log_file.c_str(),
                      std::strerror(-opened));
      }
      said_unwritable_ = true;
      return -opened;
    }
    directory_ = opened;
    backlog_most_bytes_ = chosen.backlog_bytes;
    ring_records_ = 64;
    while (ring_records_ < chosen.ring_records && ring_records_ < (1U << 24)) ring_records_ *= 2;
    said_unwritable_ = said_no_file_ = false;
    said_disk_error_.store(false, std::memory_order_relaxed);
    report_existing_logs();
    const locked hold{file_lock_};
    make_ring_file();
    return 0;
  }

  /// Closes the ring file and completes the run's information.
  /// @param keep     leave the ring file on disk: it holds what is not in the logs.
  /// @param dropped  records lost since open().
  void close_files(bool keep, std::uint64_t dropped) noexcept {
    const locked hold{file_lock_};
    clock_.with_map([&](const clock_map& map) { info_.add_clock(map.current()); });
    info_.add_records(written_.load(std::memory_order_relaxed), dropped);
    file_.finish(keep);
    names_stored_.store(~std::uint32_t{0}, std::memory_order_release);
  }

  void close() noexcept {
    ::close(directory_);
    directory_ = -1;
  }

  /// Whether a name can be found after a kill. It must be before any record has it.
  bool keeps_name(std::uint32_t id) const noexcept { return id <= names_stored_.load(); }
  void keep_names() noexcept {
    const locked hold{file_lock_};
    store_names();
  }

  /// Gives the producer a ring of this run. False where there is no memory.
  bool attach(producer& p) noexcept {
    const locked hold{file_lock_};
    if (p.ring != nullptr) ring_file::unmap(p.ring);
    p.ring = nullptr;
    if (ring_file_due_) make_ring_file();
    int error = 0;
    ring_block* ring = file_.add_ring(p.tid.load(std::memory_order_relaxed), ring_records_, error);
    if (ring == nullptr) return false;
    p.ring_in_file = error == 0;
    if (!p.ring_in_file && file_.exists()) say_no_file(error);
    info_.add_thread(p.tid.load(std::memory_order_relaxed));
    p.ring = ring;
    p.attached = true;
    p.slots = ring->slots();
    p.mask = ring->capacity - 1;
    p.published = &ring->published[0];
    return true;
  }

  /// Takes the ring out of use; it stays mapped until the next attach, as its thread may be storing
  /// a record at this moment. What could not be written is given up.
  /// @return how many records that were in memory only are lost.
  std::uint64_t detach(producer& p) noexcept {
    const bool survives = p.ring == nullptr || p.ring_in_file;
    std::uint64_t lost = survives ? 0 : lane_heads{*p.ring}.beyond(p.ring->committed());
    while (p.backlog_first != nullptr) {
      lost += lane_heads{p.backlog_first->ring}.beyond(p.backlog_first->ring.committed());
      drop_oldest(p, backlog_bytes_);
    }
    close_logs(p);
    p.attached = false;
    return lost;
  }

  /// Makes a drained producer's ring that of another thread.
  void hand_over(producer& p) noexcept {
    close_logs(p);
    if (!p.attached) return;
    p.ring->tid.store(p.tid.load(std::memory_order_relaxed), std::memory_order_relaxed);
    commit_point c = p.ring->committed();
    for (log_position& log : c.logs) log = {};
    p.ring->commit(c);
    const locked hold{file_lock_};
    info_.add_thread(p.tid.load(std::memory_order_relaxed));
  }

  /// In a forked child: rings, what is in them, and the ring file are the parent's.
  void after_fork_in_child(producer& p) noexcept {
    // Where a handler forks that interrupted a scope, that one will go on with the ring.
    const bool in_use = p.storing.load(std::memory_order_relaxed) != 0;
    if (p.ring != nullptr) in_use ? ring_file::replace(p.ring) : ring_file::unmap(p.ring);
    p.ring = nullptr;
    p.published = &p.none_published;
    detach(p);
  }
  void after_fork_in_child() noexcept {
    file_.forget();
    info_ = run_info{};
    written_.store(0, std::memory_order_relaxed);
    ring_file_due_ = true;
    names_stored_.store(~std::uint32_t{0}, std::memory_order_relaxed);
  }

  /// Writes all complete records of `p` to its logs. Returns 0 or errno; then what could not be
  /// written stays.
  int drain(producer& p) noexcept {
    ring_block& ring = *p.ring;
    const lane_heads heads{ring};
    const std::uint64_t complete = heads.beyond(ring.committed());
    if (complete == 0 && p.backlog_first == nullptr) return 0;
    drain_buffer* buffer = buffers_.take();
    if (buffer == nullptr) return ENOMEM;
    tie_clock();
    const tick_converter clock = clock_.converter();
    const auto names = [&](std::uint64_t id) {
      return names_.entry(static_cast<std::uint32_t>(id)).line_start();
    };
    log_appender logs{directory_, location_.prefix, ring, p.logs};
    int error = 0;
    while (error == 0 && p.backlog_first != nullptr) {
      ring_block& chunk = p.backlog_first->ring;
      backlog_sink sink{chunk, logs};
      const std::uint64_t aside = lane_heads{chunk}.beyond(chunk.committed());
      error = drain_ring(chunk, lane_heads{chunk}, clock, names, sink, *buffer);
      count_written(aside - lane_heads{chunk}.beyond(chunk.committed()));
      if (error == 0) drop_oldest(p, backlog_bytes_);
    }
    if (error == 0) error = drain_ring(ring, heads, clock, names, logs, *buffer);
    count_written(complete - heads.beyond(ring.committed()));
    buffers_.give_back(buffer);
    keep_or_close_logs(p);
    report_disk(error);
    return error;
  }

  /// Empties a ring that cannot be drained into memory. False where that is used up.
  bool set_aside(producer& p) noexcept {
    return detail::set_aside(p, backlog_bytes_, backlog_most_bytes_);
  }

  mutex& file_fork_lock() noexcept { return file_lock_; }
  mutex& buffers_fork_lock() noexcept { return buffers_.fork_lock(); }

 private:
  void report_existing_logs() noexcept {
    unsigned count = 0;
    for_each_entry(directory_, [&](const char* name) {
      if (is_log_name(name, location_.prefix)) ++count;
    });
    if (count > 0) {
      messages_.say("%u logs of %s/%s_* exist already; this run's lines are added to them", count,
                    location_.directory, location_.prefix);
    }
  }

  /// Makes the ring file, after what dead processes left has been put into the logs: this one may
  /// have a process or thread id of theirs. Caller holds file_lock_.
  void make_ring_file() noexcept {
    const recovery recovered = recover_directory(directory_, location_.prefix);
    if (recovered.records > 0) {
      messages_.say("%llu records of processes that died were recovered in %s",
                    static_cast<unsigned long long>(recovered.records), location_.directory);
    }
    ring_file_due_ = false;
    int error = 0;
    written_.store(0, std::memory_order_relaxed);
    clock_.with_map([&](const clock_map& map) {
      info_.create(directory_, map.current());
      error = file_.create(directory_, location_.prefix, !clock_.hardware(), map);
    });
    if (error != 0) return say_no_file(error);
    store_names();
  }

  void say_no_file(int error) noexcept {
    if (!said_no_file_) {
      messages_.say("no ring file in %s: %s; a kill would lose what is not yet in the logs",
                    location_.directory, std::strerror(error));
    }
    said_no_file_ = true;
  }

  /// Caller holds file_lock_.
  void store_names() noexcept {
    // A name that is added from here on finds itself not stored, and waits for file_lock_; one that
    // was added before is in the table.
    if (file_.exists()) names_stored_.store(file_.names_stored());
    file_.store_names(names_);
    names_stored_.store(file_.exists() ? file_.names_stored() : ~std::uint32_t{0});
  }

  void tie_clock() noexcept {
    const locked hold{file_lock_};
    const std::int64_t stepped_ns =
        clock_.tie([&](const clock_map& map) { file_.store_clock(map); });
    if (stepped_ns == 0) return;
    messages_.say("the wall clock was stepped by %.3f s; %s",
                  static_cast<double>(stepped_ns) * 1e-9,
                  stepped_ns > 0 ? "times go on from the new one"
                                 : "times go on as before, so that they stay in order");
  }

  void count_written(std::uint64_t records) noexcept {
    written_.fetch_add(records, std::memory_order_relaxed);
  }

  void report_disk(int error) noexcept {
    const bool failed = error != 0;
    if (said_disk_error_.load(std::memory_order_relaxed) == failed) return;
    if (said_disk_error_.exchange(failed) == failed) return;
    if (failed) {
      messages_.say("cannot append to the logs in %s: %s; records are kept in memory meanwhile",
                    location_.directory, std::strerror(error));
    } else {
      messages_.say("the logs in %s can be written again", location_.directory);
    }
  }

  /// Opening for each drain would cost a file system more than the writing; but descriptors are the
  /// program's, so only some threads' logs stay open.
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

  static constexpr std::uint32_t max_kept_open = 64;  ///< threads, of two logs each

  messenger& messages_;
  session_clock& clock_;
  name_table& names_;
  log_location location_{};
  int directory_ = -1;
  std::uint32_t ring_records_ = 0;
  bool said_unwritable_ = false;
  bool said_no_file_ = false;
  std::atomic<bool> said_disk_error_{false};

  mutex file_lock_;
  ring_file file_;
  run_info info_;
  std::atomic<std::uint64_t> written_{0};
  bool ring_file_due_ = false;
  std::atomic<std::uint32_t> names_stored_{~std::uint32_t{0}};
  std::atomic<std::uint32_t> kept_open_{0};

  std::atomic<std::size_t> backlog_bytes_{0};
  std::size_t backlog_most_bytes_ = 0;
  drain_buffers buffers_;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORAGE_HPP
