// Where a run's records go: rings, ring file and logs of one directory.
#ifndef LOTUS_STORE_STORAGE_HPP
#define LOTUS_STORE_STORAGE_HPP

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/options.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/recovery/directory.hpp"
#include "lotus/recovery/drain.hpp"
#include "lotus/recovery/line.hpp"
#include "lotus/recovery/log_appender.hpp"
#include "lotus/recovery/safe_open.hpp"
#include "lotus/store/backlog.hpp"
#include "lotus/store/drain_buffers.hpp"
#include "lotus/store/kept_logs.hpp"
#include "lotus/store/leftovers.hpp"
#include "lotus/store/ring_file.hpp"
#include "lotus/store/run_directory.hpp"
#include "lotus/store/run_info.hpp"
#include "lotus/store/session_clock.hpp"
#include "lotus/store/storage_reports.hpp"
#include "lotus/store/unwritten.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: open, close and after_fork_in_child under the session's control lock; all else
/// any thread, with the guard of the producer it is about.
class LOTUS_DETAIL_PER_MODULE storage {
 public:
  storage(session_clock& clock, name_table& names, const cpu_clock& cpu) noexcept
      : clock_{clock}, names_{names}, cpu_{cpu} {}

  const log_location& location() const noexcept { return location_; }

  /// Finds or makes the directory. Returns 0 or errno, after saying why once.
  int open(const options& chosen) noexcept {
    int error = location_.parse(chosen.log_file);
    if (error == 0) error = directory_.open(location_);
    if (error != 0) {
      reports_.directory_unwritable(chosen.log_file.c_str(), error);
      return error;
    }
    const int directory = directory_.descriptor();
    backlog_most_bytes_ = chosen.backlog_bytes;
    file_mode_ = chosen.file_mode & 0666U;
    owners_ = file_owners::of_caller(directory);
    ring_records_ = 64;
    while (ring_records_ < chosen.ring_records && ring_records_ < (1U << 24)) ring_records_ *= 2;
    reports_.run_begins();
    report_existing_logs(directory, location_);
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
    leftovers_.finish(directory_);
    directory_.close();
  }

  /// Whether a name can be found after a kill. It must be before any record has it.
  bool keeps_name(std::uint32_t id) const noexcept { return id <= names_stored_.load(); }
  void keep_names() noexcept {
    const locked hold{file_lock_};
    store_names();
  }

  /// Gives the producer a ring of this run. False where there is no memory.
  bool attach(producer& p) noexcept {
    make_due_ring_file();
    leftovers_.of_thread(directory_, p.tid.load(std::memory_order_relaxed));
    const locked hold{file_lock_};
    if (p.ring != nullptr) ring_file::unmap(p.ring);
    p.ring = nullptr;
    int error = 0;
    ring_block* ring = file_.add_ring(p.tid.load(std::memory_order_relaxed), ring_records_, error);
    if (ring == nullptr) return false;
    p.ring_in_file = error == 0;
    if (!p.ring_in_file && file_.exists()) reports_.no_ring_file(location_, error);
    info_.add_thread(p.tid.load(std::memory_order_relaxed));
    commit_point begin{};
    begin.loader = p.loader;
    ring->commit(begin);
    p.ring = ring;
    p.attached = true;
    p.slots = ring->slots();
    p.mask = ring->capacity - 1;
    p.published = &ring->published[0];
    return true;
  }

  /// Where `p` could not be drained for the last time.
  unwritten_records leave(producer& p) noexcept {
    const locked hold{file_lock_};
    return leave_in_ring_file(p, file_, backlog_bytes_);
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
    kept_logs_.close(p);
    p.attached = false;
    return lost;
  }

  /// Makes a drained producer's ring that of another thread.
  void hand_over(producer& p) noexcept {
    kept_logs_.close(p);
    if (!p.attached) return;
    leftovers_.of_thread(directory_, p.tid.load(std::memory_order_relaxed));
    p.ring->tid.store(p.tid.load(std::memory_order_relaxed), std::memory_order_relaxed);
    commit_point c = p.ring->committed();
    for (log_position& log : c.logs) log = {};
    c.loader = p.loader;
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
    leftovers_.forget();
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
    const log_folder folder{directory_.descriptor(),
                            location_.prefix,
                            owners_,
                            file_mode_,
                            info_.file(),
                            {&names_, [](const void* table, std::uint32_t id) {
                               return static_cast<const name_table*>(table)->entry(id).line_start();
                             }}};
    log_appender logs{folder, ring, p.logs};
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
    kept_logs_.keep_or_close(p);
    reports_.disk(location_, error, logs.name());
    return error;
  }

  /// Puts a part of what processes that died left into the logs. Whether more is left.
  bool recover_leftovers() noexcept { return leftovers_.step(directory_); }
  void leave_leftovers() noexcept { leftovers_.leave(); }

  /// Empties a ring that cannot be drained into memory. False where that is used up.
  bool set_aside(producer& p) noexcept {
    return detail::set_aside(p, backlog_bytes_, backlog_most_bytes_);
  }

  void lock_files_for_fork() noexcept {
    file_lock_.lock();
    leftovers_.fork_lock().lock();
  }
  void unlock_files_after_fork() noexcept {
    leftovers_.fork_lock().unlock();
    file_lock_.unlock();
  }
  /// What is locked last, and nothing else meanwhile.
  void lock_leaves_for_fork() noexcept {
    directory_.fork_lock().lock();
    buffers_.fork_lock().lock();
  }
  void unlock_leaves_after_fork() noexcept {
    buffers_.fork_lock().unlock();
    directory_.fork_lock().unlock();
  }

 private:
  void make_due_ring_file() noexcept {
    const locked hold{file_lock_};
    if (ring_file_due_) make_ring_file();
  }

  /// Makes the ring file, after what dead processes left has been looked at: this one may have a
  /// process or thread id of theirs. Caller holds file_lock_.
  void make_ring_file() noexcept {
    leftovers_.begin(directory_, location_);
    ring_file_due_ = false;
    written_.store(0, std::memory_order_relaxed);
    const int error = clock_.with_map([&](const clock_map& map) {
      const auto name_ns = info_.create(directory_, file_mode_, map.current(), cpu_.mode());
      const bool ticks_are_ns = !clock_.hardware();
      return file_.create(directory_, name_ns, location_.prefix, file_mode_, ticks_are_ns, map);
    });
    if (error != 0) return reports_.no_ring_file(location_, error);
    store_names();
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
    info_.tell_watching(cpu_.mode());
    const auto stepped_ns = clock_.tie([&](const clock_map& map) { file_.store_clock(map); });
    if (stepped_ns != 0) report_clock_step(stepped_ns);
  }

  void count_written(std::uint64_t records) noexcept {
    written_.fetch_add(records, std::memory_order_relaxed);
  }

  session_clock& clock_;
  name_table& names_;
  const cpu_clock& cpu_;
  log_location location_{};
  run_directory directory_;
  std::uint32_t ring_records_ = 0;
  mode_t file_mode_ = 0666;
  file_owners owners_;
  storage_reports reports_;
  kept_logs kept_logs_;
  leftovers leftovers_;

  mutex file_lock_;
  ring_file file_;
  run_info info_;
  std::atomic<std::uint64_t> written_{0};
  bool ring_file_due_ = false;
  std::atomic<std::uint32_t> names_stored_{~std::uint32_t{0}};

  std::atomic<std::size_t> backlog_bytes_{0};
  std::size_t backlog_most_bytes_ = 0;
  drain_buffers buffers_;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_STORAGE_HPP
