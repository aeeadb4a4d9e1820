// Determines which part of a thread's time off the CPU it spent waiting for a CPU.
#ifndef LOTUS_STORE_RUN_QUEUE_ACCOUNT_HPP
#define LOTUS_STORE_RUN_QUEUE_ACCOUNT_HPP

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lotus/base/extrapolated_clock.hpp"
#include "lotus/config.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/run_queue.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Divides the time off the CPU of threads. Reading a thread's schedstat file after a long wait
/// takes several microseconds, so the part is predicted in between: a thread waited for a CPU if it
/// was switched out while it computed. Each reading corrects the sum. Any thread may call all
/// functions, but only with its own run_queue_account.
class run_queue_clock {
 public:
  /// Begins to account for a thread.
  void begin(run_queue_account& of) noexcept {
    of.queue_ns = of.recorded_ns = reader_.read(of.file, 0, 0);
  }
  void give_up(run_queue_account& of) noexcept { reader_.close(of.file); }

  /// Returns the part of `off_ns`, a time off the CPU that is recorded now, without a reading.
  /// @param computing  whether the thread was computing when it was switched out.
  static std::uint64_t predict(run_queue_account& of, std::int64_t off_ns,
                               bool computing) noexcept {
    of.unread_off_ns += off_ns;
    return predict_unread(of, off_ns, computing);
  }

  /// Like predict(), but reads the thread's file if a reading is due.
  /// @param now  present time in ticks.
  /// @param cpu_ns, wall_ns  CPU time of the thread, and the time on `clock`.
  std::uint64_t part(run_queue_account& of, std::int64_t off_ns, bool computing, std::uint64_t now,
                     std::int64_t cpu_ns, std::int64_t wall_ns,
                     const extrapolated_clock& clock) noexcept {
    of.unread_off_ns += off_ns;
    const bool is_due = of.unread_off_ns >= min_unread_off_ns &&
                        (!is_predictable(of) || now >= of.due_ticks || off_ns >= long_off_ns);
    if (!is_due && of.queue_ns >= 0) return predict_unread(of, off_ns, computing);
    const std::int64_t before_ns =
        std::exchange(of.queue_ns, reader_.read(of.file, cpu_ns, wall_ns));
    if (of.queue_ns < 0) return run_queue_unknown;
    if (before_ns < 0) {
      of.recorded_ns = of.queue_ns;
      return run_queue_unknown;
    }
    compare(of, of.queue_ns - before_ns, computing ? off_ns : 0, clock.is_known());
    if (is_predictable(of)) {
      const double right = of.right_predictions - min_right_predictions + 1;
      of.due_ticks = now + clock.to_ticks(std::min(max_pause_ns, right * pause_step_ns));
    }
    // If the thread is switched out after the clocks were read and before the run queue time was
    // read, the run queue time includes a wait that the time off the CPU does not include yet. The
    // next call records the rest of that wait.
    const std::int64_t left_ns = of.queue_ns - of.recorded_ns;
    return record(of, std::max<std::int64_t>(0, std::min(left_ns, off_ns)));
  }

 private:
  static constexpr std::uint32_t min_right_predictions = 32;
  /// After so many right predictions, a reading allows the next one later, and after each further
  /// one by this much more: a few may be right by chance.
  static constexpr double pause_step_ns = 1e5;
  static constexpr double max_pause_ns = 1e7;
  /// After a time off the CPU that is this long, the file is always read. On a busy machine, a
  /// thread that computes may wait for a CPU ten times as long as it computes, which looks like a
  /// thread that waits for something else, and no later reading may correct a thread's last time.
  static constexpr std::int64_t long_off_ns = 5'000'000;
  /// The file is read only after this much time off the CPU.
  static constexpr std::int64_t min_unread_off_ns = 50'000;

  static bool is_predictable(const run_queue_account& of) noexcept {
    return of.right_predictions >= min_right_predictions;
  }

  static std::uint64_t record(run_queue_account& of, std::int64_t part_ns) noexcept {
    of.recorded_ns += part_ns;
    return static_cast<std::uint64_t>(part_ns);
  }

  static std::uint64_t predict_unread(run_queue_account& of, std::int64_t off_ns,
                                      bool computing) noexcept {
    if (of.queue_ns < 0) return run_queue_unknown;
    if (computing) of.predicted_ns += off_ns;
    // What was predicted too high before the last reading is subtracted, so that errors which are
    // too small to be noticed do not add up.
    const double share_ns = static_cast<double>(of.unread_off_ns) * of.share;
    const std::int64_t waited_ns =
        of.queue_ns + (is_predictable(of) ? of.predicted_ns : static_cast<std::int64_t>(share_ns));
    return record(of, std::max<std::int64_t>(0, std::min(waited_ns - of.recorded_ns, off_ns)));
  }

  /// Compares what was predicted since the last reading with the truth, `waited_ns`.
  /// @param last_ns  prediction for the last time off the CPU.
  static void compare(run_queue_account& of, std::int64_t waited_ns, std::int64_t last_ns,
                      bool is_clock_known) noexcept {
    const std::int64_t wrong_ns = waited_ns - std::exchange(of.predicted_ns, 0) - last_ns;
    const std::int64_t unread_ns = std::exchange(of.unread_off_ns, 0);
    of.share = std::min(1.0, static_cast<double>(waited_ns) / static_cast<double>(unread_ns));
    const bool right = is_clock_known && std::max(wrong_ns, -wrong_ns) * 16 <= unread_ns;
    of.right_predictions = right ? of.right_predictions + 1 : 0;
  }

  run_queue_reader reader_;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_QUEUE_ACCOUNT_HPP
