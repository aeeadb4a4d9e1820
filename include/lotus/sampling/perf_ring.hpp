// Opens a sampling event of perf_event_open(2), and reads the ring buffer to which the kernel
// writes the event's samples.
#ifndef LOTUS_SAMPLING_PERF_RING_HPP
#define LOTUS_SAMPLING_PERF_RING_HPP

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "lotus/base/descriptor.hpp"
#include "lotus/config.hpp"
#include "lotus/sampling/sample_layout.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns the attributes of an event that samples user code after every `interval_ns` of CPU time
/// of a thread, and of the threads and processes that the thread starts later. The event also
/// records which code they map and which threads and processes they start. It uses the CPU clock
/// instead of a hardware counter, because the CPU clock also works in virtual machines, and each
/// sample stands for the same time on every machine.
inline perf_event_attr sampling_event(std::uint64_t interval_ns) noexcept {
  perf_event_attr a{};
  a.size = sizeof(a);
  a.type = PERF_TYPE_SOFTWARE;
  a.config = PERF_COUNT_SW_CPU_CLOCK;
  a.sample_period = interval_ns;
  a.sample_type = samples_type;
  a.sample_id_all = 1;
  a.disabled = 1;
  a.inherit = 1;
  a.mmap = 1;
  a.mmap2 = 1;
  a.task = 1;
  a.exclude_kernel = 1;
  a.exclude_hv = 1;
  a.use_clockid = 1;
  a.clockid = CLOCK_MONOTONIC;
  a.watermark = 1;
  return a;
}

/// Opens a sampling event for a thread. Returns a descriptor or -errno.
/// @param cpu  number of the processor; -1: all processors, which is allowed if attr.inherit is 0.
inline int open_event(const perf_event_attr& attr, pid_t thread, int cpu) noexcept {
  const long fd = syscall(SYS_perf_event_open, &attr, thread, cpu, -1,
                          static_cast<unsigned long>(PERF_FLAG_FD_CLOEXEC));
  const int moved = move_to_high_fd(static_cast<int>(fd));
  return moved < 0 ? -errno : moved;
}

/// The ring buffer of a sampling event, mapped into memory. It is never copied or destroyed; its
/// owner calls unmap(). Not thread-safe. A forked child does not inherit the mapping.
class perf_ring {
 public:
  /// Maps the ring of event `fd` with `pages` pages (a power of two), or with fewer if the kernel's
  /// limit for unprivileged users (perf_event_mlock_kb) does not allow as many. Returns 0 or errno.
  int map(int fd, std::size_t pages) noexcept {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    for (; pages >= 1; pages /= 2) {
      void* memory = mmap(nullptr, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (memory == MAP_FAILED) continue;
      control_ = static_cast<perf_event_mmap_page*>(memory);
      data_ = static_cast<const char*>(memory) + page;
      bytes_ = pages * page;
      return 0;
    }
    return errno;
  }

  void unmap() noexcept {
    if (control_ == nullptr) return;
    munmap(control_, bytes_ + static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
    control_ = nullptr;
  }

  std::size_t bytes() const noexcept { return bytes_; }

  /// Passes to `sink(const char*, std::size_t)` the records that the kernel has written since the
  /// last call. If these records reach beyond the end of the ring, they are passed in two calls,
  /// and one record may be divided between the two.
  template <class Sink>
  void drain(Sink&& sink) noexcept {
    if (control_ == nullptr) return;
    const std::uint64_t head = counter(control_->data_head).load(std::memory_order_acquire);
    // Only this process changes data_tail, so it is read without atomics.
    std::uint64_t at = control_->data_tail;
    while (at != head) {
      const std::size_t offset = at % bytes_;
      const auto rest = static_cast<std::size_t>(head - at);
      const std::size_t segment = rest < bytes_ - offset ? rest : bytes_ - offset;
      sink(data_ + offset, segment);
      at += segment;
    }
    counter(control_->data_tail).store(head, std::memory_order_release);
  }

 private:
  /// Returns, as an atomic variable, a counter in the memory that is shared with the kernel.
  static std::atomic<__u64>& counter(__u64& shared) noexcept {
    static_assert(sizeof(std::atomic<__u64>) == sizeof(__u64) &&
                  std::atomic<__u64>::is_always_lock_free);
    return reinterpret_cast<std::atomic<__u64>&>(shared);
  }

  perf_event_mmap_page* control_ = nullptr;
  const char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_PERF_RING_HPP
