// Where a run's records go: rings, ring file and logs of one directory.
#ifndef LOTUS_STORE_STORAGE_HPP
#define LOTUS_STORE_STORAGE_HPP

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/folder/log_appender.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/format/aggregates/aggregate_text.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/format/line.hpp"
#include "lotus/options.hpp"
#include "lotus/record/aggregates.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/producers.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/backlog.hpp"
#include "lotus/store/drain_buffers.hpp"
#include "lotus/store/kept_logs.hpp"
#include "lotus/store/kept_names.hpp"
#include "lotus/store/leftovers.hpp"
#include "lotus/store/limits/log_retention.hpp"
#include "lotus/store/producer_drain.hpp"
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
  log_folder logs_folder() noexcept {
    return {directory_.descriptor(), location_.prefix, owners_, file_mode_, info_.file(),
            loader_names_in(names_), compact_};
  }

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
    compact_ = chosen.format == log_format::compact || is_flight_recorder(chosen);
    retention_.begin(chosen);
    owners_ = file_owners::of_caller(directory);
    retention_.begin_behind_parts(directory, location_.prefix, owners_);
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
    kept_names_.no_file();
  }

  void close() noexcept {
    leftovers_.finish(directory_);
    directory_.close();
  }

  /// Whether a name can be found after a kill. It must be before any record has it.
  bool keeps_name(std::uint32_t id) const noexcept { return kept_names_.has(id); }
  void keep_names() noexcept {
    const locked hold{file_lock_};
    kept_names_.store(file_, names_);
  }

  /// Gives the producer a ring of this run. False where there is no memory.
  /// store/storage_rings.hpp.
  bool attach(producer& p) noexcept;

  /// Where `p` could not be drained for the last time.
  unwritten_records leave(producer& p) noexcept {
    const locked hold{file_lock_};
    return leave_in_ring_file(p, file_, backlog_bytes_);
  }

  // --- aggregates; store/storage_aggregates.hpp

  /// Takes a call that there may be no room for yet. False where there is none to be had.
  bool aggregate(producer& p, const aggregate_call& call) noexcept;
  /// Another thread goes on with what a dead one has added up.
  static void hand_over_aggregates(producer& p) noexcept;
  /// Writes what all have added up. Returns 0 or what file_error_text() knows.
  int write_aggregates(const producer_list& all) noexcept;
  /// Likewise to a copy of the run in `folder`, each thread's as they are at one moment, and all go
  /// on; a call that ends just then waits for so long.
  int copy_aggregates(const producer_list& all, int folder) noexcept;
  /// A call when nobody writes later.
  void write_late(const producer& p, const aggregate_call& call) noexcept;
  /// They begin anew with the next call.
  static void retire_aggregates(producer& p) noexcept;
  /// Of a thread that has forked.
  static void reopen_aggregates(producer& p) noexcept;

  /// Takes the ring out of use; it stays mapped until the next attach, as its thread may be storing
  /// a record at this moment. What could not be written is given up.
  /// @return how many records that were in memory only are lost.
  std::uint64_t detach(producer& p) noexcept {
    const bool survives = p.ring == nullptr || p.ring_in_file;
    std::uint64_t lost = survives ? 0 : lane_heads{*p.ring}.beyond(p.ring->committed());
    while (p.backlog_first != nullptr) lost += drop_oldest(p);
    kept_logs_.close(p);
    p.attached = false;
    return lost;
  }

  /// Makes a drained producer's ring that of another thread. store/storage_rings.hpp.
  void hand_over(producer& p) noexcept;

  /// In a forked child: rings, what is in them, and the ring file are the parent's.
  /// store/recorder/recorder_forks.hpp.
  void after_fork_in_child(producer& p) noexcept;
  void after_fork_in_child() noexcept;

  /// Writes all complete records of `p` to its logs. Returns 0 or errno; then what could not be
  /// written stays.
  int drain(producer& p) noexcept {
    const lane_heads heads{*p.ring};
    const bool empty = heads.beyond(p.ring->committed()) == 0 && p.backlog_first == nullptr;
    if (empty && !retention_.is_due(p)) return 0;
    drain_buffer* buffer = buffers_.take();
    if (buffer == nullptr) return ENOMEM;
    tie_clock();
    const tick_converter clock = clock_.converter();
    const log_folder folder = logs_folder();
    log_appender logs{folder, *p.ring, p.logs};
    const int error = drain_producer(
        p, heads, {clock, names_, compact_, *buffer, backlog_bytes_, written_}, logs);
    if (error == 0) retention_.after_drain(folder, p);
    if (retention_.overdue()) keep_limits();
    buffers_.give_back(buffer);
    kept_logs_.keep_or_close(p);
    reports_.disk(location_, error, logs.name());
    return error;
  }

  /// A span comes that ends there. Who is told of it first waits for the disk, not who follows.
  void tell_of_span(const span_distance& end) noexcept {
    if (told_spans_.have(end)) return;
    make_due_ring_file();
    const locked hold{file_lock_};
    const std::uint64_t told_ns = info_.add_span(end);
    if (told_ns >= end.away_ns) told_spans_.tell(end.behind, told_ns);
  }

  /// What the logs have beyond their limits goes.
  void keep_limits() noexcept {
    forgotten_logs forgotten;
    if (!retention_.any() || !retention_.keep(logs_folder(), forgotten)) return;
    const locked hold{file_lock_};
    info_.add_forgotten(forgotten);
  }

  log_retention& retention() noexcept { return retention_; }

  /// Puts a part of what processes that died left into the logs. Whether more is left.
  bool recover_leftovers() noexcept { return leftovers_.step(directory_); }
  void leave_leftovers() noexcept { leftovers_.leave(); }

  /// Of what was set aside of a producer's. Returns how many records.
  /// store/recorder/recorder_pushes.hpp.
  std::uint64_t drop_oldest(producer& p) noexcept;

  /// Empties a ring that cannot be drained into memory. False where that is used up.
  bool set_aside(producer& p) noexcept {
    return detail::set_aside(p, backlog_bytes_, backlog_most_bytes_);
  }

  // What a fork locks, leaves last and nothing else meanwhile.
  template <class Each>
  void for_each_file_lock(Each&& each) noexcept {
    each(file_lock_);
    each(leftovers_.fork_lock());
  }
  template <class Each>
  void for_each_leaf_lock(Each&& each) noexcept {
    each(directory_.fork_lock());
    each(buffers_.fork_lock());
  }

 private:
  static void forget_aggregates(producer& p) noexcept;
  int append_section(std::uint32_t loader, std::string_view section) noexcept;
  int append_section(int folder, std::uint32_t loader, std::string_view section) noexcept;

  void make_due_ring_file() noexcept {
    const locked hold{file_lock_};
    if (ring_file_due_) make_ring_file();
  }

  /// Makes the ring file, after what dead processes left has been looked at: this one may have a
  /// process or thread id of theirs. Caller holds file_lock_.
  void make_ring_file() noexcept {
    leftovers_.begin(directory_, location_);
    ring_file_due_ = false;
    told_spans_.forget();
    written_.store(0, std::memory_order_relaxed);
    const int error = clock_.with_map([&](const clock_map& map) {
      const auto name_ns =
          info_.create(directory_, file_mode_, map.current(), cpu_.mode(), retention_.any());
      const std::uint32_t flags =
          (clock_.hardware() ? 0 : ticks_are_ns_flag) | (compact_ ? compact_flag : 0);
      begun_ns_ = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME));
      return file_.create(directory_, name_ns, location_.prefix, file_mode_, flags, map, begun_ns_);
    });
    if (error != 0) return reports_.no_ring_file(location_, error);
    kept_names_.store(file_, names_);
  }

  void tie_clock() noexcept {
    const locked hold{file_lock_};
    info_.tell_watching(cpu_.mode());
    const auto stepped_ns = clock_.tie([&](const clock_map& map) { file_.store_clock(map); });
    if (stepped_ns != 0) report_clock_step(stepped_ns);
  }

  session_clock& clock_;
  name_table& names_;
  const cpu_clock& cpu_;
  log_location location_{};
  run_directory directory_;
  std::uint32_t ring_records_ = 0;
  mode_t file_mode_ = 0666;
  bool compact_ = false;
  file_owners owners_;
  storage_reports reports_;
  kept_logs kept_logs_;
  log_retention retention_;
  leftovers leftovers_;

  mutex file_lock_;
  ring_file file_;
  run_info info_;
  told_spans told_spans_;
  std::atomic<std::uint64_t> written_{0};
  std::uint64_t begun_ns_ = 0;  ///< of this recording, as in the ring file
  std::uint32_t chains_ = 0;
  std::uint64_t late_calls_ = 0;
  bool ring_file_due_ = false;
  kept_names kept_names_;

  std::atomic<std::size_t> backlog_bytes_{0};
  std::size_t backlog_most_bytes_ = 0;
  drain_buffers buffers_;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_STORAGE_HPP
