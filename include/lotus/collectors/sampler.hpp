// The built-in sampler: perf_event_open(2) on this process's threads, its samples in a file beside
// the logs.
#ifndef LOTUS_COLLECTORS_SAMPLER_HPP
#define LOTUS_COLLECTORS_SAMPLER_HPP

#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

#include "lotus/clock.hpp"
#include "lotus/collectors/backend.hpp"
#include "lotus/collectors/perf_ring.hpp"
#include "lotus/collectors/sample_file.hpp"
#include "lotus/config.hpp"
#include "lotus/lock.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// What to do where the kernel forbids sampling.
inline void say_sampling_forbidden(int error) noexcept {
  collector_say(
      "the kernel does not let this process sample itself (perf_event_open: %s): set "
      "kernel.perf_event_paranoid to 2 or less, or give CAP_PERFMON; in a container also allow "
      "perf_event_open in the seccomp profile. Otherwise use the callgrind collector, which needs "
      "no permission",
      std::strerror(error));
}

/// Samples the threads of this process. One per process, never destroyed.
///
/// The thread that begins has an event for each processor it may use, inherited by every thread and
/// process it starts later; threads that ran before have one each. Events keep their phase while
/// they are off, so no two regions are sampled alike.
class sampler {
 public:
  static sampler& instance() noexcept {
    static auto* const the_sampler = new (map_memory(sizeof(sampler))) sampler;
    return *the_sampler;
  }

  /// Opens everything, off. False, after saying why, where the kernel forbids it.
  bool begin(std::uint64_t interval_ns) noexcept {
    interval_ns_ = interval_ns;
    wake_ = eventfd(0, EFD_CLOEXEC);
    pthread_t thread{};
    // Made before the events, so that it is not sampled.
    if (pthread_create(&thread, nullptr, drain_loop, this) == 0) {
      pthread_detach(thread);
      while (__atomic_load_n(&drain_tid_, __ATOMIC_ACQUIRE) == 0) sched_yield();
    }
    if (const int error = open_own_events(); error != 0) {
      say_sampling_forbidden(error);
      return false;
    }
    open_other_threads();
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    const std::uint64_t some = 1;
    // Should that fail, the rings are drained at the end only.
    return write(wake_, &some, sizeof(some)) != 0;
  }

  bool resume() noexcept { return switch_events(PERF_EVENT_IOC_ENABLE); }
  bool pause() noexcept {
    const bool done = switch_events(PERF_EVENT_IOC_DISABLE);
    note_modules();
    return done;
  }

  void region(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
    const locked hold{guard_};
    file_.region(name, begin_ns, end_ns);
  }

  /// Writes what there is. After it nothing is sampled any more.
  void finish() noexcept {
    const locked hold{guard_};
    if (events_ == 0 || forked_) return;
    for (std::size_t i = 0; i < events_; ++i) ioctl(fds_[i], PERF_EVENT_IOC_DISABLE, 0);
    drain();
    file_.modules();
    note_own_threads();
    file_.finish();
    for (std::size_t i = 0; i < events_; ++i) close(fds_[i]);
    for (std::size_t i = 0; i < rings_; ++i) ring_[i].unmap();
    events_ = rings_ = 0;
  }

  std::uint64_t interval_ns() const noexcept { return interval_ns_; }

 private:
  static constexpr std::size_t most_events = 1024;
  static constexpr std::size_t ring_pages = 32;

  sampler() noexcept = default;

  bool switch_events(unsigned long request) noexcept {
    for (std::size_t i = 0; i < events_; ++i) ioctl(fds_[i], request, 0);
    return true;
  }

  int open_own_events() noexcept {
    const perf_event_attr attr = attribute();
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    int error = ENODEV;
    for (int cpu = 0; cpu < CPU_SETSIZE && events_ < most_events; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed)) continue;
      const int fd = open_event(attr, 0, cpu);
      error = fd < 0 ? -fd : add(fd);
      if (error != 0 && events_ == 0) return error;
    }
    return events_ > 0 ? 0 : error;
  }

  void open_other_threads() noexcept {
    perf_event_attr attr = attribute();
    attr.inherit = 0;
    for_each_thread([&](pid_t tid) {
      if (tid == gettid() || events_ == most_events || is_own_thread(tid)) return;
      const int fd = open_event(attr, tid, -1);
      if (fd >= 0) add(fd);
    });
  }

  /// The session's drain thread may have been started later, and so be sampled.
  void note_own_threads() noexcept {
    for_each_thread([&](pid_t tid) {
      if (is_own_thread(tid)) file_.own_thread(static_cast<std::uint32_t>(tid));
    });
  }

  /// By its name: "lotus-…".
  static bool is_own_thread(pid_t tid) noexcept {
    char path[64];
    char name[32] = {};
    std::snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t got = read(fd, name, sizeof(name) - 1);
    close(fd);
    return got > 0 && std::strncmp(name, "lotus-", 6) == 0;
  }

  template <class Each>
  static void for_each_thread(Each&& each) noexcept {
    DIR* tasks = opendir("/proc/self/task");
    if (tasks == nullptr) return;
    while (const dirent* entry = readdir(tasks)) {
      const auto tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
      if (tid > 0) each(tid);
    }
    closedir(tasks);
  }

  perf_event_attr attribute() const noexcept {
    perf_event_attr attr = sampling_event(interval_ns_);
    attr.wakeup_watermark = static_cast<std::uint32_t>(ring_pages * 1024);
    return attr;
  }

  int add(int fd) noexcept {
    const int error = ring_[rings_].map(fd, ring_pages);
    if (error != 0) {
      close(fd);
      return error;
    }
    ++rings_;
    fds_[events_++] = fd;
    return 0;
  }

  void drain() noexcept {
    for (std::size_t i = 0; i < rings_; ++i) {
      ring_[i].drain([&](const char* data, std::size_t bytes) {
        file_.begin(interval_ns_);
        file_.append(data, bytes);
      });
    }
  }

  /// Notes what is mapped, if objects were loaded or unloaded since the last time.
  void note_modules() noexcept {
    std::uint64_t changes = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* result) {
          *static_cast<std::uint64_t*>(result) = info->dlpi_adds + info->dlpi_subs;
          return 1;
        },
        &changes);
    if (changes == module_changes_) return;
    module_changes_ = changes;
    const locked hold{guard_};
    file_.begin(interval_ns_);
    file_.modules();
  }

  static void* drain_loop(void* self) noexcept {
    sampler& s = *static_cast<sampler*>(self);
    pthread_setname_np(pthread_self(), "lotus-sampler");
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    __atomic_store_n(&s.drain_tid_, gettid(), __ATOMIC_RELEASE);
    std::uint64_t ready = 0;
    if (read(s.wake_, &ready, sizeof(ready)) < 0) return nullptr;
    s.drain_for_ever();
    return nullptr;
  }

  void drain_for_ever() noexcept {
    auto* waits = static_cast<pollfd*>(map_memory(most_events * sizeof(pollfd)));
    if (waits == nullptr) return;
    for (;;) {
      std::size_t count = 0;
      {
        const locked hold{guard_};
        for (; count < events_; ++count) {
          waits[count] = {gone_[count] ? -1 : fds_[count], POLLIN, 0};
        }
      }
      if (count == 0) return;
      const int ready = poll(waits, static_cast<nfds_t>(count), 500);
      const locked hold{guard_};
      if (ready > 0) drain();
      // poll() returns at once for the event of a thread that is gone.
      for (std::size_t i = 0; i < count; ++i) {
        if ((waits[i].revents & (POLLHUP | POLLERR)) != 0) gone_[i] = true;
      }
    }
  }

  /// A child does not have the rings, and its parent's events are not its to switch. What it runs
  /// is sampled on with its parent's thread that forked it.
  static void after_fork_in_child() noexcept {
    sampler& s = instance();
    for (std::size_t i = 0; i < s.events_; ++i) close(s.fds_[i]);
    s.file_.forget();
    s.forked_ = true;
    s.events_ = s.rings_ = 0;
    new (&s.guard_) mutex;
  }

  std::uint64_t interval_ns_ = 0;
  int wake_ = -1;
  pid_t drain_tid_ = 0;
  bool forked_ = false;
  std::size_t events_ = 0;
  std::size_t rings_ = 0;
  int fds_[most_events] = {};
  bool gone_[most_events] = {};  ///< for the drain thread only
  perf_ring ring_[most_events];
  std::uint64_t module_changes_ = 0;

  mutex guard_;  ///< of rings and file
  sample_file file_;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_SAMPLER_HPP
