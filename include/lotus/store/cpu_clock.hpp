// Measures how long threads are off the CPU, and reads clocks only if the thread was switched out.
//
// Linux has an area for restartable sequences for each thread (rseq(2); glibc 2.35 and later
// register it). When a thread continues after it was switched out or received a signal, the kernel
// clears the pointer in that area, unless the thread is executing the sequence to which it points.
// lotus stores a pointer to a sequence that no thread ever executes, so switches clear it.
//
// Reading the clocks after a switch takes a system call, and how long the thread waited for a CPU
// another one, which finds nothing in the CPU's caches after a long wait. So a thread that is
// switched out often reads them only now and then, and records estimates in between. Each reading
// corrects the sum: it records the difference between the time that was read and the time that is
// recorded already.
#ifndef LOTUS_STORE_CPU_CLOCK_HPP
#define LOTUS_STORE_CPU_CLOCK_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <utility>

#include "lotus/base/clock.hpp"
#include "lotus/base/interruption.hpp"
#include "lotus/base/stack_pointer.hpp"
#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/record/thread_ring.hpp"
#include "lotus/store/run_queue.hpp"

#if defined(__GLIBC__) && __has_include(<sys/rseq.h>)
  #include <sys/rseq.h>
  #define LOTUS_DETAIL_HAS_RSEQ 1
#else
  #define LOTUS_DETAIL_HAS_RSEQ 0
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the address of the pointer in this thread's rseq area; null if there is no such area.
inline std::uint64_t* sequence_pointer() noexcept {
#if LOTUS_DETAIL_HAS_RSEQ
  if (__rseq_size == 0) return nullptr;
  char* thread = nullptr;
  #if defined(__x86_64__)
  __asm__("mov %%fs:0, %0" : "=r"(thread));
  #else
  __asm__("mrs %0, tpidr_el0" : "=r"(thread));
  #endif
  return reinterpret_cast<std::uint64_t*>(thread + __rseq_offset + offsetof(struct rseq, rseq_cs));
#else
  return nullptr;
#endif
}

/// When threads read their CPU clocks: never, once per batch, or whenever they were switched out.
/// Information files contain these names.
enum class cpu_watching : std::uint32_t { off, batches, switches };

/// Measures how long threads are off the CPU. The object must be in memory that is never freed,
/// because every thread's rseq area points into it. Any thread may call all functions, but only
/// with its own cpu_account.
class cpu_clock {
 public:
  /// @param wanted  whether to measure from now on.
  void begin(bool wanted) noexcept {
    const bool sequences = sequence_pointer() != nullptr;
    if (sequences) make_sequence();
    const cpu_watching mode = !wanted     ? cpu_watching::off
                              : sequences ? cpu_watching::switches
                                          : cpu_watching::batches;
    change_mode(mode);
  }

  cpu_watching mode() const noexcept { return mode_.load(std::memory_order_acquire); }

  /// Returns this thread's time off the CPU since its previous call (the first call returns 0), and
  /// sets up `watch` to detect the next time off the CPU.
  /// @param in  where the thread was switched out, if threads notice all switches.
  off_cpu_time read(cpu_account& account, cpu_watch& watch, const off_cpu_window& in) noexcept {
    if (account.reading != 0 && is_interrupted(account.reading)) return {};
    account.reading = stack_pointer();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const cpu_watching mode = this->mode();
    begin_watch(watch, mode);
    off_cpu_time found;
    if (mode != cpu_watching::off) found = find(account, in, mode);
    if (found.off_ns != 0) {
      account.futile = 0;
    } else if (mode == cpu_watching::switches && is_futile(account)) {
      // The mode changes for all threads, because the information file states only one mode for the
      // whole process.
      change_mode(cpu_watching::batches);
      begin_watch(watch, cpu_watching::batches);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    account.reading = 0;
    return found;
  }

  /// Clears the cpu_account of a thread that no longer exists, so that another thread can use it.
  /// In a forked child, the threads of the parent no longer exist.
  void give_up(cpu_account& account) noexcept {
    run_queue_.close(account.run_queue);
    account = {};
  }

  /// Makes the first check in a forked child read the clocks, because the child's CPU clock starts
  /// at 0.
  static void disturb() noexcept {
    if (std::uint64_t* const pointer = sequence_pointer()) {
      __atomic_store_n(pointer, 0, __ATOMIC_RELAXED);
    }
  }

 private:
  void change_mode(cpu_watching mode) noexcept {
    mode_.store(mode, std::memory_order_release);
    // Threads without an rseq area watch the number runs_, and read their clocks when it changes.
    __atomic_fetch_add(&runs_, 1, __ATOMIC_RELEASE);
  }

  /// A restartable sequence in the kernel's layout, which is struct rseq_cs of linux/rseq.h.
  struct alignas(32) sequence {
    std::uint32_t version;
    std::uint32_t flags;
    std::uint64_t start_ip;
    std::uint64_t post_commit_offset;
    std::uint64_t abort_ip;
  };

  /// A shorter time off the CPU is ignored, because the wall clock and the CPU clock are not read
  /// at the same moment.
  static constexpr std::int64_t min_off_ns = 500;
  /// If this many calls within futile_ns find no time off the CPU, another library probably
  /// keeps changing the rseq area. Then clocks are read only once per batch.
  static constexpr std::uint32_t max_futile = 1000;
  static constexpr std::int64_t futile_ns = 100'000'000;

  // Limits of what the readings cost. A reading that takes a time t allows the next one only
  // clocks_pause * t after it, so they take at most 0.5 % of a thread's time; but after
  // max_clocks_pause_ns, so that 2,000 readings per second are always allowed. As many as fit into
  // clocks_burst_ns may follow each other at once.
  static constexpr std::uint64_t clocks_pause = 200;
  static constexpr double max_clocks_pause_ns = 5e5;
  static constexpr double clocks_burst_ns = 1e7;
  /// The same for the time in the run queue, after it was predicted right so many times in a row.
  static constexpr std::uint32_t min_right_predictions = 16;
  static constexpr std::uint64_t queue_pause = 2000;
  static constexpr double max_queue_pause_ns = 2e7;
  static constexpr std::int64_t max_extrapolated_ns = 20'000'000;
  static constexpr std::int64_t max_wrong_ns = 1'000'000;
  /// The time in the run queue is read only after this much time off the CPU.
  static constexpr std::int64_t min_unread_off_ns = 50'000;

  /// Creates a sequence of one byte of data, which no thread ever executes.
  void make_sequence() noexcept {
#if LOTUS_DETAIL_HAS_RSEQ
    if (sequence_.start_ip != 0) return;  // the sequence exists, and the kernel may be reading it
    signature_[0] = RSEQ_SIG;
    sequence_ = {0, 0, reinterpret_cast<std::uintptr_t>(&never_run_), 1,
                 reinterpret_cast<std::uintptr_t>(&signature_[1])};
    marked_sequence_ = sequence_;
#endif
  }

  void begin_watch(cpu_watch& watch, cpu_watching mode) const noexcept {
    std::uint64_t* const pointer = sequence_pointer();
    if (mode == cpu_watching::switches && pointer != nullptr) {
      const auto armed = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&sequence_));
      __atomic_store_n(pointer, armed, __ATOMIC_RELAXED);
      const auto marked =
          static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&marked_sequence_));
      watch = {pointer, armed, false, true, armed, marked};
    } else {
      const std::uint64_t runs = __atomic_load_n(&runs_, __ATOMIC_ACQUIRE);
      watch = {&runs_, runs, mode == cpu_watching::batches, false, runs, 0};
    }
  }

  /// Returns CLOCK_MONOTONIC_RAW, which is not adjusted to other clocks. Extrapolates from the last
  /// reading, because a reading may take as long as a system call if it is not in the CPU's caches.
  static std::int64_t wall(cpu_account& account) noexcept {
    const std::uint64_t ticks = now_ticks();
    const std::uint64_t passed = ticks - account.last_ticks;
    // A small part of the time in which the rate was measured, so that the result is as exact as
    // the readings were.
    const bool near = passed < (account.last_ticks - account.first_ticks) / 32;
    const std::int64_t passed_ns = to_ns(account, passed);
    if (near && passed_ns < max_extrapolated_ns) return account.last_wall_ns + passed_ns;
    return read_wall(account, ticks);
  }

  static std::int64_t read_wall(cpu_account& account, std::uint64_t ticks) noexcept {
    const std::int64_t wall_ns = clock_ns(CLOCK_MONOTONIC_RAW);
    const std::int64_t passed_ns = wall_ns - account.last_wall_ns;
    const std::int64_t wrong_ns = passed_ns - to_ns(account, ticks - account.last_ticks);
    const bool jumped = wrong_ns > max_wrong_ns || -wrong_ns > max_wrong_ns;
    // While the machine sleeps, the ticks may continue or stop.
    if (account.first_ticks == 0 || (account.ns_per_tick > 0 && jumped)) {
      account.first_ticks = ticks;
      account.first_wall_ns = wall_ns;
      account.ns_per_tick = 0;
    }
    if (ticks > account.first_ticks) {
      account.ns_per_tick = static_cast<double>(wall_ns - account.first_wall_ns) /
                            static_cast<double>(ticks - account.first_ticks);
    }
    account.last_ticks = ticks;
    account.last_wall_ns = wall_ns;
    return wall_ns;
  }

  static std::int64_t to_ns(const cpu_account& account, std::uint64_t ticks) noexcept {
    return static_cast<std::int64_t>(static_cast<double>(ticks) * account.ns_per_tick);
  }
  /// Returns when the next reading is allowed, after one that took `ticks`.
  static std::uint64_t pause(const cpu_account& account, std::uint64_t ticks, std::uint64_t factor,
                             double max_ns) noexcept {
    const auto max_ticks = static_cast<std::uint64_t>(max_ns / account.ns_per_tick);
    return std::min(ticks * factor, max_ticks);
  }
  /// Whether a thread was computing when it was switched out, according to the time that it was off
  /// the CPU in a window, and not waiting for something. Then it probably waited for a CPU.
  static bool was_computing(std::int64_t window_ns, std::int64_t off_ns) noexcept {
    return (window_ns - off_ns) * 8 > off_ns;
  }

  /// Returns the time off the CPU since the last call.
  off_cpu_time find(cpu_account& account, const off_cpu_window& in, cpu_watching mode) noexcept {
    const std::uint64_t now = in.end_ticks;
    // If threads do not notice switches, they may have been switched out at any moment.
    const std::uint64_t known = mode == cpu_watching::switches ? in.begin_ticks : 0;
    const std::uint64_t begin = std::max(known, account.looked_ticks);
    const std::uint64_t window = now > begin ? now - begin : 0;
    account.looked_ticks = now;
    account.window_ticks += window;
    if (!account.begun) return begin_account(account);
    const bool limited = account.ns_per_tick > 0;
    if (limited) {
      const auto burst = static_cast<std::uint64_t>(clocks_burst_ns / account.ns_per_tick);
      if (account.clocks_due_ticks > now + burst) return estimate(account, window);
    }
    const off_cpu_time found = read_clocks(account, now);
    if (limited) {
      const std::uint64_t took = now_ticks() - now;
      account.clocks_due_ticks = std::max(account.clocks_due_ticks, now) +
                                 pause(account, took, clocks_pause, max_clocks_pause_ns);
    }
    return found;
  }

  LOTUS_DETAIL_COLD off_cpu_time begin_account(cpu_account& account) noexcept {
    account.begun = true;
    account.window_ticks = 0;
    // Opening the file takes longest, and must not count as time off the CPU of the first span.
    account.queue_ns = account.recorded_queue_ns = run_queue_.read(account.run_queue, 0, 0);
    const std::int64_t wall_ns = read_wall(account, now_ticks());
    account.off_ns = account.recorded_off_ns = wall_ns - clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return {};
  }

  /// Returns an estimate of the time off the CPU in the last window: the same share of it as in the
  /// windows before the last reading.
  static off_cpu_time estimate(cpu_account& account, std::uint64_t window) noexcept {
    const std::int64_t window_ns = to_ns(account, window);
    const auto off_ns =
        static_cast<std::int64_t>(static_cast<double>(window_ns) * account.off_share);
    if (off_ns < min_off_ns) return {};
    account.recorded_off_ns += off_ns;
    account.unread_off_ns += off_ns;
    return {static_cast<std::uint64_t>(off_ns),
            predict_queue(account, off_ns, was_computing(window_ns, off_ns))};
  }

  /// Reads the wall clock before the CPU clock: if the thread is switched out between the two
  /// readings, the next call returns that time.
  off_cpu_time read_clocks(cpu_account& account, std::uint64_t now) noexcept {
    const std::int64_t wall_ns = wall(account);
    const std::int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const std::int64_t off_ns = wall_ns - cpu_ns;
    const std::int64_t true_ns = off_ns - account.off_ns;
    const std::int64_t window_ns = std::max(to_ns(account, account.window_ticks), true_ns);
    account.off_share =
        true_ns > 0 ? static_cast<double>(true_ns) / static_cast<double>(window_ns) : 0;
    account.off_ns = off_ns;
    account.window_ticks = 0;
    const std::int64_t new_off_ns = off_ns - account.recorded_off_ns;
    if (new_off_ns < min_off_ns) return {};
    account.recorded_off_ns = off_ns;
    account.unread_off_ns += new_off_ns;
    const bool computing = was_computing(window_ns, true_ns);
    const bool is_due = account.unread_off_ns >= min_unread_off_ns &&
                        (!is_predictable(account) || now >= account.queue_due_ticks);
    return {static_cast<std::uint64_t>(new_off_ns),
            is_due || account.queue_ns < 0
                ? read_queue(account, new_off_ns, computing, cpu_ns, wall_ns)
                : predict_queue(account, new_off_ns, computing)};
  }

  static bool is_predictable(const cpu_account& account) noexcept {
    return account.right_predictions >= min_right_predictions;
  }

  static std::uint64_t predict_queue(cpu_account& account, std::int64_t off_ns,
                                     bool computing) noexcept {
    if (account.queue_ns < 0) return run_queue_unknown;
    const std::int64_t prediction = computing ? off_ns : 0;
    account.predicted_queue_ns += prediction;
    const std::int64_t part_ns =
        is_predictable(account)
            ? prediction
            : static_cast<std::int64_t>(static_cast<double>(off_ns) * account.queue_share);
    account.recorded_queue_ns += part_ns;
    return static_cast<std::uint64_t>(part_ns);
  }

  /// Reads how long this thread waited for a CPU. Returns the part that belongs to new_off_ns.
  std::uint64_t read_queue(cpu_account& account, std::int64_t new_off_ns, bool computing,
                           std::int64_t cpu_ns, std::int64_t wall_ns) noexcept {
    const std::uint64_t begin = now_ticks();
    const std::int64_t queue_ns = run_queue_.read(account.run_queue, cpu_ns, wall_ns);
    const std::int64_t before_ns = account.queue_ns;
    account.queue_ns = queue_ns;
    if (queue_ns < 0) return run_queue_unknown;
    if (before_ns < 0) {
      account.recorded_queue_ns = queue_ns;
      return run_queue_unknown;
    }
    const std::int64_t waited_ns = queue_ns - before_ns;
    const std::int64_t wrong_ns =
        waited_ns - account.predicted_queue_ns - (computing ? new_off_ns : 0);
    const std::int64_t unread_ns = std::exchange(account.unread_off_ns, 0);
    account.predicted_queue_ns = 0;
    account.queue_share =
        std::min(1.0, static_cast<double>(waited_ns) / static_cast<double>(unread_ns));
    const bool right = account.ns_per_tick > 0 && std::max(wrong_ns, -wrong_ns) * 16 <= unread_ns;
    account.right_predictions = right ? account.right_predictions + 1 : 0;
    if (is_predictable(account)) {
      account.queue_due_ticks =
          begin + pause(account, now_ticks() - begin, queue_pause, max_queue_pause_ns);
    }
    // If the thread is switched out after the clocks were read and before the run queue time was
    // read, the run queue time includes a wait that the time off the CPU does not include yet. The
    // next call records the rest of that wait.
    const std::int64_t left_ns = queue_ns - account.recorded_queue_ns;
    const std::int64_t part_ns = std::max<std::int64_t>(0, std::min(left_ns, new_off_ns));
    account.recorded_queue_ns += part_ns;
    return static_cast<std::uint64_t>(part_ns);
  }

  static bool is_futile(cpu_account& account) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (account.futile++ == 0) account.futile_since_ns = now_ns;
    if (account.futile < max_futile) return false;
    account.futile = 0;
    return now_ns - account.futile_since_ns < futile_ns;
  }

  sequence sequence_{};
  /// A second sequence that no thread ever executes: its address in the rseq area marks the watch;
  /// see cpu_watch::mark().
  sequence marked_sequence_{};
  [[maybe_unused]] std::uint32_t signature_[2] = {};
  [[maybe_unused]] char never_run_ = 0;
  std::uint64_t runs_ = 0;
  std::atomic<cpu_watching> mode_{cpu_watching::off};
  run_queue_reader run_queue_;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_CPU_CLOCK_HPP
