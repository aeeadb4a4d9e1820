// Reports events and errors of the run's files as messages.
#ifndef LOTUS_STORE_STORAGE_REPORTS_HPP
#define LOTUS_STORE_STORAGE_REPORTS_HPP

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/folder/log_parts.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

inline void report_recovered(const log_location& location, std::uint64_t records) noexcept {
  say("%llu records of processes that died were recovered in %s",
      static_cast<unsigned long long>(records), location.directory);
}

inline void report_clock_step(std::int64_t stepped_ns) noexcept {
  say("the wall clock was stepped by %.3f s; %s", static_cast<double>(stepped_ns) * 1e-9,
      stepped_ns > 0 ? "times go on from the new one"
                     : "times go on as before, so that they stay in order");
}

/// Reports errors that may occur often, but each of them only once per run. disk() is thread-safe;
/// callers of the other functions hold a lock.
class storage_reports {
 public:
  void run_begins() noexcept {
    unwritable_reported_ = no_ring_file_reported_ = shared_blocks_reported_ = false;
    deleted_reported_ = slow_reported_ = false;
    disk_failed_.store(false, std::memory_order_relaxed);
    limits_fail_reported_.store(false, std::memory_order_relaxed);
    refused_.store(0, std::memory_order_relaxed);
  }

  /// Reports that logs with this directory and prefix exist already. Reports nothing if the
  /// previous report was about the same directory and prefix, because then this process has
  /// recorded there itself.
  void existing_logs(int directory, const log_location& location) noexcept {
    unsigned count = 0;
    for_each_entry(directory, [&](const char* name) {
      log_name log;
      if (!log.parse(name, location.prefix) || log.part != 0) return;
      if (log.compact || log.role != log_role::side) ++count;
    });
    if (count == 0) return;
    const std::uint64_t place = hash_of(location.prefix, hash_of(location.directory, fnv_offset));
    if (place == existing_reported_in_) return;
    existing_reported_in_ = place;
    say("%u logs of %s/%s_* exist already; this run's lines are added to them", count,
        location.directory, location.prefix);
  }

  void directory_unwritable(const char* log_file, int error) noexcept {
    if (unwritable_reported_) return;
    unwritable_reported_ = true;
    say("cannot write %s_*: %s; this run is not recorded", log_file, std::strerror(error));
  }

  void no_ring_file(const log_location& location, int error) noexcept {
    if (no_ring_file_reported_) return;
    no_ring_file_reported_ = true;
    if (error == EOPNOTSUPP) {
      return say(
          "%s is on a file system that writes changed blocks elsewhere, so there is no ring "
          "file: if the process is killed, records that are not yet in the logs are lost",
          location.directory);
    }
    say("cannot create a ring file in %s: %s; if the process is killed, records that are not yet "
        "in the logs are lost",
        location.directory, std::strerror(error));
  }

  /// @param follows  whether another directory has the deleted one's path.
  void directory_deleted(const log_location& location, bool follows) noexcept {
    if (!deleted_reported_) {
      say("%s was deleted: its logs are lost, and so are later records until it exists again",
          location.directory);
    }
    if (follows) say("%s exists again and is used", location.directory);
    deleted_reported_ = !follows;
  }

  /// @param ns  how long one round of the drain thread took.
  void round_took(const log_location& location, std::int64_t ns) noexcept {
    constexpr std::int64_t slow_ns = 2'000'000'000;
    if (LOTUS_DETAIL_LIKELY(ns < slow_ns) || slow_reported_) return;
    slow_reported_ = true;
    say("writing to %s took %lld s: its file system was frozen or is very slow, or this process "
        "was "
        "stopped meanwhile; threads that record may have waited as long",
        location.directory, static_cast<long long>(ns / 1'000'000'000));
  }

  /// Thread-safe.
  void limits_fail(const log_location& location, int error) noexcept {
    if (limits_fail_reported_.exchange(true, std::memory_order_relaxed)) return;
    say("cannot rename or delete logs in %s: %s; they grow beyond the limit that was set",
        location.directory, std::strerror(error));
  }

  void shared_blocks(const log_location& location, int error) noexcept {
    if (shared_blocks_reported_) return;
    shared_blocks_reported_ = true;
    say("a copy of %s shares the blocks of the ring file, and there is no room to separate them: "
        "%s; delete the copy, or this process may be killed by SIGBUS",
        location.directory, std::strerror(error));
  }

  /// Must be called after each attempt to append to the logs. Reports when appending begins to fail
  /// and when it works again.
  /// @param error  0, or an error that file_error_text() can describe.
  /// @param log  name of the log that was opened last.
  void disk(const log_location& location, int error, const char* log) noexcept {
    if (is_refusal(error)) return refused(location, error, log);
    const bool failed = error != 0;
    if (disk_failed_.load(std::memory_order_relaxed) == failed) return;
    if (disk_failed_.exchange(failed) == failed) return;
    if (failed) {
      say("cannot append to the logs in %s: %s; records are kept in memory meanwhile",
          location.directory, std::strerror(error));
    } else {
      say("the logs in %s can be written again", location.directory);
    }
  }

 private:
  /// Reports that a log was refused, for example because it is a symbolic link or belongs to
  /// another user. Reports each kind of reason once. Other logs may still be writable.
  void refused(const log_location& location, int error, const char* log) noexcept {
    const std::uint32_t kind = error == ELOOP ? 1U : 2U << (error - not_regular);
    if ((refused_.load(std::memory_order_relaxed) & kind) != 0) return;
    if ((refused_.fetch_or(kind) & kind) != 0) return;
    say("cannot append to %s/%s: it %s; records are kept in memory meanwhile", location.directory,
        log, file_error_text(error));
  }

  // The constants of 64-bit FNV-1a (Fowler, Noll, Vo).
  static constexpr std::uint64_t fnv_offset = 0xcbf29ce484222325U;
  static std::uint64_t hash_of(const char* text, std::uint64_t hash) noexcept {
    constexpr std::uint64_t prime = 0x100000001b3U;
    do {
      hash = (hash ^ static_cast<unsigned char>(*text)) * prime;
    } while (*text++ != '\0');
    return hash;
  }

  /// Hash of the directory and prefix for which existing_logs() last reported; 0: none.
  std::uint64_t existing_reported_in_ = 0;
  bool unwritable_reported_ = false;
  bool no_ring_file_reported_ = false;
  bool shared_blocks_reported_ = false;
  bool deleted_reported_ = false;
  bool slow_reported_ = false;
  std::atomic<bool> disk_failed_{false};
  std::atomic<bool> limits_fail_reported_{false};
  std::atomic<std::uint32_t> refused_{0};  ///< one bit for each kind of refusal that was reported
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_STORAGE_REPORTS_HPP
