// Manages a process's files in the run's directory: its ring file and its information file.
#ifndef LOTUS_STORE_RUN_RUN_FILES_HPP
#define LOTUS_STORE_RUN_RUN_FILES_HPP

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "lotus/base/clock.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/folder/loader_folder.hpp"
#include "lotus/folder/log_claims.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/options.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/store/cpu_clock.hpp"
#include "lotus/store/kept_names.hpp"
#include "lotus/store/leftovers.hpp"
#include "lotus/store/limits/log_limits.hpp"
#include "lotus/store/limits/log_retention.hpp"
#include "lotus/store/ring_file.hpp"
#include "lotus/store/run/run_directory.hpp"
#include "lotus/store/run/run_info.hpp"
#include "lotus/store/session_clock.hpp"
#include "lotus/store/storage_reports.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The directory of a run, and this process's ring file and information file in it. Call open,
/// make_ring_file, close_files, close and after_fork_in_child under the session's control lock, all
/// other functions on any thread.
class LOTUS_DETAIL_PER_MODULE run_files {
 public:
  run_files(session_clock& clock, name_table& names, const cpu_clock& cpu) noexcept
      : clock_{clock}, names_{names}, cpu_{cpu} {}

  const log_location& location() const noexcept { return location_; }
  int directory() noexcept { return directory_.descriptor(); }
  log_folder logs_folder() noexcept {
    return {directory_.descriptor(), location_.prefix, owners_, file_mode_, info_.file(),
            names_.line_starts(),    compact_};
  }
  storage_reports& reports() noexcept { return reports_; }

  /// Finds or creates the directory. Returns 0 or errno; reports an error only once per run.
  LOTUS_DETAIL_COLD int open(const options& chosen) noexcept {
    int error = location_.parse(chosen.log_file);
    if (error == 0) error = directory_.open(location_);
    if (error != 0) {
      reports_.directory_unwritable(chosen.log_file.c_str(), error);
      return error;
    }
    file_mode_ = chosen.file_mode & 0666U;
    compact_ = chosen.format == log_format::compact;
    owners_ = file_owners::of_caller(directory_.descriptor());
    directory_.add_to_list(location_.prefix);
    reports_.run_begins();
    reports_.existing_logs(directory_.descriptor(), location_);
    return 0;
  }

  /// Creates the ring file. Must be called after open().
  /// @param limited  whether logs are deleted when they exceed limits.
  void make_ring_file(bool limited) noexcept {
    const locked hold{lock_};
    limited_ = limited;
    ring_file_due_ = false;
    make_ring_file_locked();
  }

  /// Creates a forked child's ring file, unless it exists. Called when the child first records.
  void make_due_ring_file() noexcept {
    const locked hold{lock_};
    if (ring_file_due_) make_ring_file_locked();
  }

  /// Closes the ring file and completes the information file.
  /// @param keep  whether the ring file stays on the disk, because it contains records that are not
  /// in the logs.
  /// @param dropped  number of records lost since open().
  /// @param complete  whether no thread stores records any more; false while the process exits.
  LOTUS_DETAIL_COLD void close_files(bool keep, std::uint64_t dropped, bool complete) noexcept {
    const locked hold{lock_};
    clock_.with_map([&](const clock_map& map) { info_.add_clock(map.current()); });
    info_.add_cpu_time();
    info_.add_records(written_.load(std::memory_order_relaxed), dropped);
    file_.finish(keep, complete);
    kept_names_.no_file();
  }

  void close() noexcept {
    leftovers_.finish(directory_);
    directory_.close();
  }

  /// Whether recovery can find the name with this id after a kill. If not, call keep_names() before
  /// a record with the name is stored.
  bool keeps_name(std::uint32_t id) const noexcept { return kept_names_.has(id); }
  void keep_names() noexcept {
    const locked hold{lock_};
    kept_names_.store(file_, names_);
  }

  /// If the directory was deleted and another one has its path now, records to that directory from
  /// now on. Returns whether the ring file was deleted as well, so that the existing rings need a
  /// new one.
  LOTUS_DETAIL_COLD bool follow_directory() noexcept {
    if (LOTUS_DETAIL_LIKELY(!directory_.was_deleted())) return false;
    const locked hold{lock_};
    const bool had_file = file_.exists();
    file_.forget();
    kept_names_.no_file();
    const bool follows = directory_.follow();
    reports_.directory_deleted(location_, follows);
    if (!follows) return had_file;
    owners_ = file_owners::of_caller(directory_.descriptor());
    info_ = run_info{};
    make_ring_file_locked();
    return true;
  }

  // --- Functions for threads.

  /// Recovers the records of dead processes' threads with this id. Must be called before a thread
  /// with this id writes logs.
  void recover_thread(std::uint32_t tid) noexcept { leftovers_.of_thread(directory_, tid); }

  void add_thread(std::uint32_t tid) noexcept {
    const locked hold{lock_};
    info_.add_thread(tid);
  }

  /// Returns a new number, which no other log has, for logs that several threads will share.
  /// @param tid  id of the first of these threads.
  std::uint32_t new_log_number(std::uint32_t tid) noexcept {
    const locked hold{lock_};
    const std::uint32_t number = number_of_no_thread(tid);
    report_log_number(directory_.descriptor(), info_.file(), owners_, number, tid);
    return number;
  }

  /// Returns a ring for a thread; null if there is no memory.
  /// @param survives  set to whether the ring is in the ring file and so survives the process.
  /// @param may_be_small  see ring_file::add_ring().
  ring_block* add_ring(std::uint32_t tid, std::uint32_t records, bool may_be_small,
                       bool& survives) noexcept {
    const locked hold{lock_};
    int error = 0;
    ring_block* const ring = file_.add_ring(tid, records, may_be_small, error);
    if (ring == nullptr) return nullptr;
    survives = error == 0;
    if (!survives && file_.exists()) reports_.no_ring_file(location_, error);
    info_.add_thread(tid);
    return ring;
  }

  /// Returns a ring in the ring file for a thread that has one already, and whose id the
  /// information file contains; null if the ring file cannot grow.
  ring_block* add_whole_ring(std::uint32_t tid, std::uint32_t records) noexcept {
    const locked hold{lock_};
    int error = 0;
    return file_.add_whole_ring(tid, records, error);
  }

  /// Returns a block for the aggregates of a thread; null if there is no memory.
  aggregates_block* add_aggregates(std::uint32_t tid, std::uint32_t chain) noexcept {
    const locked hold{lock_};
    int error = 0;
    aggregates_block* const block = file_.add_aggregates(tid, chain, error);
    if (error != 0 && file_.exists()) reports_.no_ring_file(location_, error);
    return block;
  }

  /// See ring_file::add_copy().
  bool add_copy(ring_block& from, const lane_heads& heads) noexcept {
    const locked hold{lock_};
    return file_.add_copy(from, heads);
  }

  /// Number of records that this recording has written to logs. Threads that drain increment it.
  std::atomic<std::uint64_t>& written() noexcept { return written_; }

  // --- Functions about the information and the clock in the files.

  /// Returns when this recording began, in ns since the Unix epoch: ring_file_header::began_ns.
  std::uint64_t began_ns() noexcept {
    const locked hold{lock_};
    return began_ns_;
  }

  /// Copies the name of this process's information file to `name`; "" if it has none yet.
  template <std::size_t Bytes>
  void put_info_name(char (&name)[Bytes]) noexcept {
    const locked hold{lock_};
    std::snprintf(name, Bytes, "%s", info_.file());
  }

  void tie_clock() noexcept {
    const locked hold{lock_};
    info_.report_watching(cpu_.mode());
    const auto stepped_ns = clock_.tie([&](const clock_map& map) { file_.store_clock(map); });
    if (stepped_ns != 0) report_clock_step(stepped_ns);
  }

  /// Stores in the information file how far from now a span ends; see run_info::add_span(). If the
  /// program measured the times of a span itself, call this function before the span is recorded.
  /// If an earlier span ended at least as far away, nothing is written; otherwise the call may wait
  /// for the disk.
  void report_span(const span_distance& end) noexcept {
    if (info_.covers(end)) return;
    make_due_ring_file();
    const locked hold{lock_};
    info_.add_span(end);
  }

  void add_due_cpu_time() noexcept {
    const locked hold{lock_};
    info_.add_due_cpu_time();
  }

  /// Keeps a copy of the ring file from taking its blocks; see ring_file::unshare_blocks().
  void keep_own_blocks() noexcept {
    const locked hold{lock_};
    const int error = file_.unshare_blocks();
    if (error != 0) reports_.shared_blocks(location_, error);
  }

  void add_deleted(const deleted_logs& forgotten) noexcept {
    const locked hold{lock_};
    info_.add_deleted(forgotten);
  }

  // --- Recovery of leftovers: records that dead processes left in their ring files.

  /// Appends some of the leftovers to the logs. Returns whether more of them remain.
  bool recover_leftovers() noexcept { return leftovers_.step(directory_); }
  void leave_leftovers() noexcept { leftovers_.leave(); }

  // --- Functions for a fork.

  /// Forgets the files in a forked child, because they belong to the parent.
  void after_fork_in_child() noexcept {
    file_.forget();
    leftovers_.forget();
    info_ = run_info{};
    written_.store(0, std::memory_order_relaxed);
    ring_file_due_ = true;
    kept_names_.no_file();
  }

  // Lock order: lock_, then the lock of the leftovers. No other lock is taken while the directory's
  // lock is held.
  mutex& fork_lock() noexcept { return lock_; }
  mutex& leftovers_fork_lock() noexcept { return leftovers_.fork_lock(); }
  mutex& directory_fork_lock() noexcept { return directory_.fork_lock(); }

 private:
  /// Creates the ring file. First recovers leftovers, because this process or its threads may have
  /// the ids of dead ones. The caller holds lock_.
  LOTUS_DETAIL_COLD void make_ring_file_locked() noexcept {
    leftovers_.begin(directory_, location_, !ring_file_due_);
    ring_file_due_ = false;
    written_.store(0, std::memory_order_relaxed);
    const int error = clock_.with_map([&](const clock_map& map) {
      const auto name_ns =
          info_.create(directory_, file_mode_, map.current(), cpu_.mode(), limited_);
      const std::uint32_t flags =
          (clock_.hardware() ? 0 : ticks_are_ns_flag) | (compact_ ? compact_flag : 0);
      began_ns_ = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME));
      return file_.create(directory_, name_ns, location_.prefix, file_mode_, flags, map, began_ns_);
    });
    if (error != 0) return reports_.no_ring_file(location_, error);
    kept_names_.store(file_, names_);
  }

  session_clock& clock_;
  name_table& names_;
  const cpu_clock& cpu_;
  log_location location_{};
  run_directory directory_;
  mode_t file_mode_ = 0666;
  bool compact_ = false;
  bool limited_ = false;
  file_owners owners_;
  storage_reports reports_;
  leftovers leftovers_;

  mutex lock_;  ///< protects all following members that are not atomic
  ring_file file_;
  run_info info_;
  std::atomic<std::uint64_t> written_{0};
  std::uint64_t began_ns_ = 0;
  bool ring_file_due_ = false;
  kept_names kept_names_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_RUN_FILES_HPP
