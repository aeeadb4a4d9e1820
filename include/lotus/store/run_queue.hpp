// Reads how long threads have waited for a CPU, from their files /proc/thread-self/schedstat.
#ifndef LOTUS_STORE_RUN_QUEUE_HPP
#define LOTUS_STORE_RUN_QUEUE_HPP

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "lotus/base/descriptor.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/record/thread.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Reads the schedstat files of threads, and keeps some of them open. Any thread may call all
/// functions, but only with its own run_queue_file.
class run_queue_reader {
 public:
  /// Returns how long this thread has waited for a CPU since it began, in ns; -1 if unknown.
  /// @param cpu_ns   CPU time of this thread, read before this call.
  /// @param wall_ns  time on any clock, by which the descriptor is checked once per second.
  std::int64_t read(run_queue_file& file, std::int64_t cpu_ns, std::int64_t wall_ns) noexcept {
    schedstat now = contents(file.descriptor.number());
    const bool checked = wall_ns - file.checked_ns < check_interval_ns;
    if (!checked || !follows(now, file, cpu_ns)) {
      file.checked_ns = wall_ns;
      const uncanceled quiet;
      if (!file.descriptor.holds()) now = reopen(file);
    }
    if (now.queue_ns >= 0) {
      file.cpu_ns = now.cpu_ns;
      file.queue_ns = now.queue_ns;
    }
    return now.queue_ns;
  }

  void close(run_queue_file& file) noexcept {
    if (file.descriptor.number() >= 0) open_files_.fetch_sub(1, std::memory_order_relaxed);
    file.descriptor.close();
    file = {};
  }

 private:
  static constexpr std::uint32_t max_open_files = 32;
  static constexpr std::int64_t check_interval_ns = 1'000'000'000;

  struct schedstat {
    std::int64_t cpu_ns = -1;
    std::int64_t queue_ns = -1;
  };

  /// Whether the file can be the one that was read last. The program may have closed the descriptor
  /// and reused its number; fstat(2) would show this too, but takes half as long as pread(2).
  static bool follows(const schedstat& now, const run_queue_file& last,
                      std::int64_t cpu_ns) noexcept {
    constexpr std::int64_t since_cpu_ns = 100'000'000;
    return now.cpu_ns >= last.cpu_ns && now.queue_ns >= last.queue_ns &&
           now.cpu_ns <= cpu_ns + since_cpu_ns;
  }

  /// Reads the first two of the three numbers in the file. Unlike pread(3), the system call is not
  /// a cancellation point.
  static schedstat contents(int fd) noexcept {
    if (fd < 0) return {};
    char text[96] = {};
    const int error = errno;
    const long bytes = syscall(SYS_pread64, fd, text, sizeof(text) - 1, 0);
    errno = error;
    if (bytes <= 0) return {};
    const char* at = text;
    schedstat now;
    now.cpu_ns = number(at);
    now.queue_ns = *at == ' ' ? number(++at) : -1;
    return *at == ' ' ? now : schedstat{};
  }

  static std::int64_t number(const char*& at) noexcept {
    std::uint64_t n = 0;
    for (; *at >= '0' && *at <= '9'; ++at) n = n * 10 + static_cast<std::uint64_t>(*at - '0');
    return static_cast<std::int64_t>(n);
  }

  /// Opens the thread's file again and reads it. Keeps the file open, unless max_open_files are
  /// open already.
  schedstat reopen(run_queue_file& file) noexcept {
    if (file.descriptor.number() >= 0) {  // the program has closed the descriptor
      open_files_.fetch_sub(1, std::memory_order_relaxed);
    }
    file.descriptor = {};
    const int fd = open_at_high_fd(AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY);
    const schedstat now = contents(fd);
    if (fd < 0) return now;
    if (open_files_.fetch_add(1, std::memory_order_relaxed) < max_open_files) {
      file.descriptor = owned_descriptor{fd};
      return now;
    }
    open_files_.fetch_sub(1, std::memory_order_relaxed);
    ::close(fd);
    return now;
  }

  std::atomic<std::uint32_t> open_files_{0};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_QUEUE_HPP
