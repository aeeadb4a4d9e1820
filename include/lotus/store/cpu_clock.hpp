// Measures how long threads are off the CPU, and reads clocks only if the thread was switched out.
//
// Linux has an area for restartable sequences for each thread (rseq(2); glibc 2.35 and later
// register it). When a thread continues after it was switched out or received a signal, the kernel
// clears the pointer in that area, unless the thread is executing the sequence to which it points.
// lotus stores a pointer to a sequence that no thread ever executes, so switches clear it.
#ifndef LOTUS_STORE_CPU_CLOCK_HPP
#define LOTUS_STORE_CPU_CLOCK_HPP

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include "lotus/base/clock.hpp"
#include "lotus/base/descriptor.hpp"
#include "lotus/base/interruption.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/base/stack_pointer.hpp"
#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread.hpp"

#if defined(__GLIBC__) && __has_include(<sys/rseq.h>)
  #include <sys/rseq.h>
  #define LOTUS_DETAIL_HAS_RSEQ 1
#else
  #define LOTUS_DETAIL_HAS_RSEQ 0
#endif

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
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
  off_cpu_time read(cpu_account& account, cpu_watch& watch) noexcept {
    if (account.reading != 0 && is_interrupted(account.reading)) return {};
    const uncanceled quiet;
    account.reading = stack_pointer();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const cpu_watching mode = this->mode();
    begin_watch(watch, mode);
    const off_cpu_time found = mode != cpu_watching::off ? find(account) : off_cpu_time{};
    if (mode == cpu_watching::switches && found.off_ns == 0 && is_futile(account)) {
      // The mode changes for all threads, because the information file states only one mode for the
      // whole process.
      change_mode(cpu_watching::batches);
      begin_watch(watch, cpu_watching::batches);
    }
    if (found.off_ns != 0) account.futile = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    account.reading = 0;
    return found;
  }

  /// Clears the cpu_account of a thread that no longer exists, so that another thread can use it.
  /// In a forked child, the threads of the parent no longer exist.
  void give_up(cpu_account& account) noexcept {
    if (account.schedstat.number() >= 0) open_files_.fetch_sub(1, std::memory_order_relaxed);
    account.schedstat.close();
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
  /// If this many readings within futile_ns find no time off the CPU, another library probably
  /// keeps changing the rseq area. Then clocks are read only once per batch.
  static constexpr std::uint32_t max_futile = 1000;
  static constexpr std::int64_t futile_ns = 100'000'000;
  static constexpr std::uint32_t max_open_files = 32;

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

  /// Returns the time off the CPU since the last call. Reads the wall clock before the CPU clock:
  /// if the thread is switched out between the two readings, the next call returns that time.
  off_cpu_time find(cpu_account& account) noexcept {
    const std::int64_t off_ns = clock_ns(CLOCK_MONOTONIC_RAW) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const std::int64_t new_off_ns = off_ns - account.reported_off_ns;
    if (account.begun && new_off_ns < min_off_ns) return {};
    const std::int64_t queue_ns = run_queue_ns(account);
    const bool first = !account.begun;
    account.begun = true;
    account.reported_off_ns = off_ns;
    const auto found_ns = static_cast<std::uint64_t>(new_off_ns);
    if (first || queue_ns < 0) {
      if (queue_ns >= 0) account.reported_run_queue_ns = queue_ns;
      return first ? off_cpu_time{} : off_cpu_time{found_ns, run_queue_unknown};
    }
    // If the thread is switched out after the clocks were read and before the run queue time was
    // read, the run queue time includes a wait that the time off the CPU does not include yet. The
    // next call reports the rest of that wait.
    const std::int64_t waited_ns = queue_ns - account.reported_run_queue_ns;
    const std::int64_t reported_ns = waited_ns < 0            ? 0
                                     : waited_ns < new_off_ns ? waited_ns
                                                              : new_off_ns;
    account.reported_run_queue_ns += reported_ns;
    return {found_ns, static_cast<std::uint64_t>(reported_ns)};
  }

  static bool is_futile(cpu_account& account) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (account.futile++ == 0) account.futile_since_ns = now_ns;
    if (account.futile < max_futile) return false;
    account.futile = 0;
    return now_ns - account.futile_since_ns < futile_ns;
  }

  /// Returns how long this thread has waited for a CPU since it began, in ns; -1 if unknown.
  std::int64_t run_queue_ns(cpu_account& account) noexcept {
    if (!account.schedstat.holds()) open_schedstat(account);
    char text[96];
    int fd = account.schedstat.number();
    const bool kept = fd >= 0;
    if (!kept) fd = open_schedstat_file();
    const ssize_t bytes = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
    if (!kept && fd >= 0) close(fd);
    if (bytes <= 0) return -1;
    text[bytes] = '\0';
    char* after_cpu_time = nullptr;
    static_cast<void>(strtoll(text, &after_cpu_time, 10));
    return strtoll(after_cpu_time, nullptr, 10);
  }

  static int open_schedstat_file() noexcept {
    return open_at_high_fd(AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY);
  }

  /// Opens the thread's schedstat file, which contains its run queue time. Keeps the file open,
  /// unless max_open_files are open already.
  void open_schedstat(cpu_account& account) noexcept {
    if (account.schedstat.number() >= 0) {  // the program has closed the descriptor
      open_files_.fetch_sub(1, std::memory_order_relaxed);
      account.schedstat = {};
    }
    if (open_files_.fetch_add(1, std::memory_order_relaxed) < max_open_files) {
      account.schedstat = owned_descriptor{open_schedstat_file()};
      if (account.schedstat.number() >= 0) return;
    }
    open_files_.fetch_sub(1, std::memory_order_relaxed);
  }

  sequence sequence_{};
  /// A second sequence that no thread ever executes: its address in the rseq area marks the watch;
  /// see cpu_watch::mark().
  sequence marked_sequence_{};
  [[maybe_unused]] std::uint32_t signature_[2] = {};
  [[maybe_unused]] char never_run_ = 0;
  std::uint64_t runs_ = 0;
  std::atomic<cpu_watching> mode_{cpu_watching::off};
  std::atomic<std::uint32_t> open_files_{0};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_CPU_CLOCK_HPP
