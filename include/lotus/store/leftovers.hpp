// Recovers leftovers: appends the records in dead processes' ring files to the logs.
#ifndef LOTUS_STORE_LEFTOVERS_HPP
#define LOTUS_STORE_LEFTOVERS_HPP

#include <atomic>
#include <cstdint>

#include "lotus/base/clock.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/record/message.hpp"
#include "lotus/recovery/recovery.hpp"
#include "lotus/store/run/run_directory.hpp"
#include "lotus/store/storage_reports.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Recovers leftovers step by step: the start of a recording waits only briefly, and the drain
/// thread does the rest. A thread that has the id of a dead thread writes to the same log. Before
/// it does so, it recovers the dead thread's records; otherwise its first lines would look like the
/// end of an append that the dead thread did not finish.
///
/// All functions are thread-safe.
class LOTUS_DETAIL_PER_MODULE leftovers {
 public:
  /// @param directory  the run's directory, the same at every call; borrowed.
  /// @param reports  whether to report what is recovered; false in a forked child, because a
  /// program that forks often would repeat the message.
  LOTUS_DETAIL_COLD void begin(run_directory& directory, const log_location& location,
                               bool reports) noexcept {
    const locked hold{lock_};
    location_ = &location;
    reports_ = reports;
    records_ = 0;
    said_ = 0;
    run(directory, start_ns, false);
    if (!left_.load(std::memory_order_relaxed)) return report();
    if (!reports_) return;
    say("records of processes that died in %s are being recovered in the background",
        location_->directory);
  }

  /// Recovers leftovers until none remain or the time step_ns has passed. Returns whether any
  /// remain.
  LOTUS_DETAIL_COLD bool step(run_directory& directory) noexcept {
    if (!left_.load(std::memory_order_relaxed)) return false;
    const signals_blocked quiet;
    const locked hold{lock_};
    if (!left_.load(std::memory_order_relaxed)) return false;
    run(directory, step_ns, true);
    if (left_.load(std::memory_order_relaxed)) return true;
    report();
    return false;
  }

  /// Recovers all records of dead threads with this id. Must be called before a thread with this id
  /// writes to its log.
  LOTUS_DETAIL_COLD void of_thread(run_directory& directory, std::uint32_t tid) noexcept {
    if (!left_.load(std::memory_order_relaxed)) return;
    const locked hold{lock_};
    if (!left_.load(std::memory_order_relaxed)) return;
    recovery_limits limits;
    limits.prefix = location_->prefix;
    limits.tid = tid;
    take(recover(directory, limits));
  }

  /// Recovers leftovers, for at most finish_ns, when the recording ends.
  void finish(run_directory& directory) noexcept {
    const locked hold{lock_};
    if (!left_.load(std::memory_order_relaxed)) return;
    run(directory, finish_ns, true);
    give_up();
  }

  /// Leaves all remaining leftovers to a later process or `lotus-tool recover`, because this
  /// process is about to exit.
  LOTUS_DETAIL_COLD void leave() noexcept {
    const locked hold{lock_};
    if (left_.load(std::memory_order_relaxed)) give_up();
  }

  /// Forgets the leftovers in a forked child, which looks for them again when it creates a ring
  /// file.
  void forget() noexcept { left_.store(false, std::memory_order_relaxed); }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::int64_t start_ns = 2'000'000;
  static constexpr std::int64_t step_ns = 20'000'000;
  static constexpr std::int64_t finish_ns = 1'000'000'000;

  // --- The caller of the following functions holds lock_.

  LOTUS_DETAIL_COLD void run(run_directory& directory, std::int64_t max_ns, bool advance) noexcept {
    recovery_limits limits;
    limits.prefix = location_->prefix;
    limits.until_ns = clock_ns(CLOCK_MONOTONIC) + max_ns;
    limits.advance = advance;
    const recovery r = recover(directory, limits);
    take(r);
    left_.store(r.left, std::memory_order_relaxed);
  }

  recovery recover(run_directory& directory, const recovery_limits& limits) noexcept {
    const int opened = directory.descriptor();
    if (opened < 0) {
      recovery none;
      none.left = true;
      return none;
    }
    return recover_directory(opened, limits,
                             [this](const char* name, dead_ring_file::state state, int error) {
                               say_left(name, state, error);
                             });
  }

  void take(const recovery& r) noexcept {
    records_ += r.records;
    if (r.error != 0 && first(1)) {
      say("cannot write records of processes that died to %s/%s: %s%s", location_->directory,
          r.failed_log, is_refusal(r.error) ? "it " : "", file_error_text(r.error));
    }
    if (r.lost > 0) {
      say("%llu records of processes that died in %s were in their memory only and are lost",
          static_cast<unsigned long long>(r.lost), location_->directory);
    }
  }

  /// Reports each kind of problem once, with the name of the first file that has it.
  void say_left(const char* name, dead_ring_file::state state, int error) noexcept {
    if (state == dead_ring_file::state::doubted && first(2)) {
      say("%s/%s is damaged: its invalid records are not in the logs, and the file is kept",
          location_->directory, name);
    }
    if (state == dead_ring_file::state::damaged && first(4)) {
      say("%s/%s is not a ring file and was not changed", location_->directory, name);
    }
    if (state == dead_ring_file::state::other_version && first(8)) {
      say("%s/%s is of another version of lotus: use the `lotus-tool recover` of that version",
          location_->directory, name);
    }
    if (state == dead_ring_file::state::refused && first(error == ELOOP         ? 16U
                                                         : error >= not_regular ? 32U
                                                                                : 64U)) {
      say("%s/%s is not recovered: %s%s", location_->directory, name,
          is_refusal(error) ? "it " : "", file_error_text(error));
    }
  }

  bool first(std::uint32_t kind) noexcept {
    const bool is_first = (said_ & kind) == 0;
    said_ |= kind;
    return is_first;
  }

  void give_up() noexcept {
    report();
    if (!left_.exchange(false)) return;
    say("more records of processes that died remain in %s; run `lotus-tool recover` to "
        "recover them",
        location_->directory);
  }

  void report() noexcept {
    if (records_ == 0) return;
    if (reports_) report_recovered(*location_, records_);
    records_ = 0;
  }

  mutex lock_;
  std::atomic<bool> left_{false};
  const log_location* location_ = nullptr;
  std::uint64_t records_ = 0;
  std::uint32_t said_ = 0;
  bool reports_ = true;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LEFTOVERS_HPP
