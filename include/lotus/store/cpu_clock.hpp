// Measures how long threads are off the CPU, and reads clocks only if the thread was switched out.
//
// Linux has an area for restartable sequences for each thread (rseq(2); glibc 2.35 and later
// register it). When a thread continues after it was switched out or received a signal, the kernel
// clears the pointer in that area, unless the thread is executing the sequence to which it points.
// lotus stores a pointer to a sequence that no thread ever executes, so switches clear it.
//
// Reading the CPU clock after a switch takes a system call. So a thread that is switched out often
// reads it only now and then, and records estimates in between. Each reading corrects the sum: it
// records the difference between the time that was read and the time that is recorded already.
#ifndef LOTUS_STORE_CPU_CLOCK_HPP
#define LOTUS_STORE_CPU_CLOCK_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "lotus/base/clock.hpp"
#include "lotus/base/interruption.hpp"
#include "lotus/base/stack_pointer.hpp"
#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/record/thread_ring.hpp"
#include "lotus/store/run_queue_account.hpp"

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
    run_queue_.give_up(account.queue);
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

  /// Minimum mean time between readings, which limits them to 2,000 per second or 0.2 % of a
  /// thread's time. After a pause, burst_ns / pause_ns readings may follow each other immediately.
  static constexpr double pause_ns = 5e5;
  static constexpr double burst_ns = 1e7;

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
    if (account.wall.is_known()) {
      if (account.due_ticks > now + account.wall.to_ticks(burst_ns)) {
        return estimate(account, window);
      }
      account.due_ticks = std::max(account.due_ticks, now) + account.wall.to_ticks(pause_ns);
    }
    return read_clocks(account, now);
  }

  LOTUS_DETAIL_COLD off_cpu_time begin_account(cpu_account& account) noexcept {
    account.begun = true;
    account.window_ticks = 0;
    // Opening the file takes longest, and must not count as time off the CPU of the first span.
    run_queue_.begin(account.queue);
    const std::int64_t wall_ns = account.wall.read(now_ticks());
    account.off_ns = account.recorded_off_ns = wall_ns - clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return {};
  }

  /// Returns an estimate of the time off the CPU in the last window: the same share of it as in the
  /// windows before the last reading.
  static off_cpu_time estimate(cpu_account& account, std::uint64_t window) noexcept {
    const std::int64_t window_ns = account.wall.to_ns(window);
    const auto off_ns =
        static_cast<std::int64_t>(static_cast<double>(window_ns) * account.off_share);
    if (off_ns < min_off_ns) return {};
    account.recorded_off_ns += off_ns;
    return {static_cast<std::uint64_t>(off_ns),
            run_queue_clock::predict(account.queue, off_ns, was_computing(window_ns, off_ns))};
  }

  /// Reads the wall clock before the CPU clock: if the thread is switched out between the two
  /// readings, the next call returns that time.
  off_cpu_time read_clocks(cpu_account& account, std::uint64_t now) noexcept {
    const std::int64_t wall_ns = account.wall.ns(now_ticks());
    const std::int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const std::int64_t off_ns = wall_ns - cpu_ns;
    const std::int64_t true_ns = off_ns - account.off_ns;
    const std::int64_t window_ns = std::max(account.wall.to_ns(account.window_ticks), true_ns);
    account.off_share =
        true_ns > 0 ? static_cast<double>(true_ns) / static_cast<double>(window_ns) : 0;
    account.off_ns = off_ns;
    account.window_ticks = 0;
    const std::int64_t new_off_ns = off_ns - account.recorded_off_ns;
    if (new_off_ns < min_off_ns) return {};
    account.recorded_off_ns = off_ns;
    return {static_cast<std::uint64_t>(new_off_ns),
            run_queue_.part(account.queue, new_off_ns, was_computing(window_ns, true_ns), now,
                            cpu_ns, wall_ns, account.wall)};
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
  run_queue_clock run_queue_;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_CPU_CLOCK_HPP
