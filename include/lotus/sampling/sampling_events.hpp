// Manages the sampling events (perf_event_open(2)) of all threads of this process, and the kernel's
// ring buffers of samples.
#ifndef LOTUS_SAMPLING_SAMPLING_EVENTS_HPP
#define LOTUS_SAMPLING_SAMPLING_EVENTS_HPP

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lotus/base/process_threads.hpp"
#include "lotus/config.hpp"
#include "lotus/record/message.hpp"
#include "lotus/sampling/perf_ring.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Reports that the kernel forbids sampling, and what users can do about it.
inline void say_sampling_forbidden(int error) noexcept {
  say("the kernel does not let this process sample itself (perf_event_open: %s): set "
      "kernel.perf_event_paranoid to 2 or less, or give CAP_PERFMON; in a container also allow "
      "perf_event_open in the seccomp profile. Otherwise use the callgrind collector, which needs "
      "no permission",
      std::strerror(error));
}

/// Calls ioctl(2) on a perf event. C libraries declare the request as unsigned long or as int.
template <class Request, class Argument>
int perf_ioctl(int (*call)(int, Request, ...), int fd, unsigned long request,
               Argument argument) noexcept {
  return call(fd, static_cast<Request>(request), argument);
}

/// The sampling events. Every thread has one event per processor, which threads and processes that
/// the thread starts later inherit. All events of a processor share one ring. An event that is
/// disabled and enabled again continues with the time that remained until its next sample, so
/// samples do not always hit the same points of a region. Not thread-safe: class sampler locks a
/// mutex where two threads could call a function at the same time. Never copied or destroyed;
/// close() releases everything.
class sampling_events {
 public:
  static constexpr std::size_t most = 1024;

  /// Opens all sampling events without enabling them. Returns false, after reporting the reason, if
  /// the kernel forbids sampling.
  LOTUS_DETAIL_COLD bool open(std::uint64_t interval_ns) noexcept {
    interval_ns_ = interval_ns;
    if (const int error = open_own(); error != 0) {
      say_sampling_forbidden(error);
      return false;
    }
    open_other_threads();
    if (unsampled_ > 0) {
      say("%zu threads or processors cannot be sampled: %s", unsampled_,
          unsampled_error_ == EMFILE  ? "too few descriptors; raise ulimit -n"
          : unsampled_error_ == EPERM ? "too little locked memory; raise kernel.perf_event_mlock_kb"
                                      : std::strerror(unsampled_error_));
    }
    return true;
  }

  bool are_open() const noexcept { return events_ > 0; }

  void enable() const noexcept { request_all(PERF_EVENT_IOC_ENABLE); }
  void disable() const noexcept { request_all(PERF_EVENT_IOC_DISABLE); }

  /// Passes the samples since the last call to `sink(const char*, std::size_t)`.
  template <class Sink>
  void drain(Sink&& sink) noexcept {
    for (std::size_t i = 0; i < rings_; ++i) ring_[i].drain(sink);
  }

  /// Writes the descriptors for which poll() must wait to `waits`, which has room for `most` of
  /// them. Returns their number.
  std::size_t to_wait_for(pollfd* waits) const noexcept {
    for (std::size_t i = 0; i < rings_; ++i) {
      waits[i] = {gone_[i] || !is_ours(i) ? -1 : fds_[i], POLLIN, 0};
    }
    return rings_;
  }
  /// Notes which threads have ended: poll() must not wait for their events, because it would return
  /// immediately. The rings of these events are still drained, because events of other threads may
  /// share them.
  void note_gone(const pollfd* waits, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if ((waits[i].revents & (POLLHUP | POLLERR)) != 0) some_gone_ = gone_[i] = true;
    }
  }
  bool some_gone() const noexcept { return some_gone_; }

  LOTUS_DETAIL_COLD void close() noexcept {
    close_descriptors();
    for (std::size_t i = 0; i < rings_; ++i) ring_[i].unmap();
    events_ = rings_ = 0;
  }
  /// Closes only the descriptors: a forked child inherits the descriptors but not the rings.
  void close_descriptors() const noexcept {
    for (std::size_t i = 0; i < events_; ++i) {
      if (is_ours(i)) ::close(fds_[i]);
    }
  }

 private:
  static constexpr std::size_t ring_pages = 32;

  void request_all(unsigned long request) const noexcept {
    for (std::size_t i = 0; i < events_; ++i) {
      if (is_ours(i)) perf_ioctl(ioctl, fds_[i], request, 0);
    }
  }

  /// Returns the number by which the kernel identifies an event. An inode would not identify the
  /// event, because all anonymous files have the same inode.
  static std::uint64_t event_id(int fd) noexcept {
    std::uint64_t id = 0;
    return perf_ioctl(ioctl, fd, PERF_EVENT_IOC_ID, &id) == 0 ? id : 0;
  }
  /// Whether the descriptor still refers to this event: the program may have closed the descriptor.
  bool is_ours(std::size_t event) const noexcept { return event_id(fds_[event]) == ids_[event]; }

  void add(int fd) noexcept {
    ids_[events_] = event_id(fd);
    fds_[events_++] = fd;
  }

  /// Opens one event per processor for the calling thread. Processors that this thread may not use
  /// are included, because threads that it starts may use them.
  int open_own() noexcept {
    const auto processors = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
    int error = ENODEV;
    for (int cpu = 0; cpu < processors && rings_ < most; ++cpu) {
      error = open_with_ring(attribute(), 0, cpu);
      if (error == 0 || error == ENODEV) continue;  // ENODEV: the processor is offline
      if (rings_ == 0) return error;
      note_unsampled(error);
    }
    return rings_ > 0 ? 0 : error;
  }

  /// Opens events for the other threads: one per thread and processor or, if that needs too many
  /// descriptors, one per thread, which the threads that it starts do not inherit.
  void open_other_threads() noexcept {
    std::size_t threads = 0;
    for_each_other_thread([&](pid_t) { ++threads; });
    rlimit descriptors{};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    const bool few =
        (threads + 1) * rings_ <= most && (threads + 1) * rings_ <= descriptors.rlim_cur / 2;
    for_each_other_thread([&](pid_t tid) {
      const int error = few ? open_into_rings(tid) : open_for_one_thread(tid);
      if (error != 0 && error != ESRCH) note_unsampled(error);  // ESRCH: the thread has ended
    });
  }

  int open_into_rings(pid_t tid) noexcept {
    for (std::size_t i = 0; i < rings_; ++i) {
      const int fd = open_event(attribute(), tid, cpus_[i]);
      if (fd < 0) return -fd;
      ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, fds_[i]);
      add(fd);
    }
    return 0;
  }

  int open_for_one_thread(pid_t tid) noexcept {
    if (events_ == most) return EMFILE;
    perf_event_attr attr = attribute();
    attr.inherit = 0;
    return open_with_ring(attr, tid, -1);
  }

  /// Opens an event with a ring of its own. Call this function before other events are opened, so
  /// that the event in `fds_` and its ring in `ring_` have the same index. Returns 0 or errno.
  int open_with_ring(const perf_event_attr& attr, pid_t tid, int cpu) noexcept {
    const int fd = open_event(attr, tid, cpu);
    if (fd < 0) return -fd;
    const int error = ring_[rings_].map(fd, ring_pages);
    if (error != 0) {
      ::close(fd);
      return error;
    }
    cpus_[rings_++] = cpu;
    add(fd);
    return 0;
  }

  perf_event_attr attribute() const noexcept {
    perf_event_attr attr = sampling_event(interval_ns_);
    attr.wakeup_watermark = static_cast<std::uint32_t>(ring_pages * 1024);
    return attr;
  }

  void note_unsampled(int error) noexcept {
    ++unsampled_;
    unsampled_error_ = error;
  }

  std::uint64_t interval_ns_ = 0;
  std::size_t events_ = 0;
  std::size_t rings_ = 0;
  int fds_[most] = {};            ///< descriptor of each event
  std::uint64_t ids_[most] = {};  ///< the kernel's number of each event
  int cpus_[most] = {};           ///< processor of each ring
  /// Whether the thread of each ring's event has ended. Only the sampler's thread uses gone_ and
  /// some_gone_.
  bool gone_[most] = {};
  bool some_gone_ = false;
  perf_ring ring_[most];
  std::size_t unsampled_ = 0;
  int unsampled_error_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_SAMPLING_EVENTS_HPP
