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
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
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
#include "lotus/loader.hpp"
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
/// Every thread has an event for each processor, which the threads and processes it starts later
/// inherit; all events of a processor share one ring. Events keep their phase while they are off,
/// so no two regions are sampled alike.
class sampler {
 public:
  static sampler& instance() noexcept {
    // Not a static that is made once: a child that is forked meanwhile would wait for ever.
    static std::atomic<sampler*> the_sampler{nullptr};
    sampler* known = the_sampler.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto* fresh = new (map_memory(sizeof(sampler))) sampler;
    return the_sampler.compare_exchange_strong(known, fresh) ? *fresh : *known;
  }

  /// Opens everything, off. False, after saying why, where the kernel forbids it.
  bool begin(std::uint64_t interval_ns) noexcept {
    interval_ns_ = interval_ns;
    begun_in_ = getpid();
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
    if (unsampled_ > 0) {
      collector_say("%zu threads or processors cannot be sampled: %s", unsampled_,
                    unsampled_error_ == EMFILE ? "too few descriptors; raise ulimit -n"
                    : unsampled_error_ == EPERM
                        ? "too little locked memory; raise kernel.perf_event_mlock_kb"
                        : std::strerror(unsampled_error_));
    }
    static std::atomic<bool> handles_forks{false};
    if (!handles_forks.exchange(true)) pthread_atfork(nullptr, nullptr, after_fork_in_child);
    const std::uint64_t some = 1;
    // Should that fail, the rings are drained at the end only.
    return write(wake_, &some, sizeof(some)) != 0;
  }

  /// In a forked child, begins anew.
  bool resume() noexcept {
    forget_parent();
    if (begun_in_ == 0 && !begin(interval_ns_)) return false;
    note_modules();
    return switch_events(PERF_EVENT_IOC_ENABLE);
  }
  bool pause() noexcept {
    forget_parent();
    return switch_events(PERF_EVENT_IOC_DISABLE);
  }

  /// Notes a region, and writes its samples: the program may end without a word.
  void region(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
    forget_parent();
    const locked hold{guard_};
    drain();
    file_.region(name, begin_ns, end_ns);
  }

  /// Writes what there is. After it nothing is sampled any more.
  void finish() noexcept {
    forget_parent();
    const locked hold{guard_};
    if (events_ == 0) return;
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

  explicit sampler(std::uint64_t interval_ns = 0) noexcept : interval_ns_{interval_ns} {}

  bool switch_events(unsigned long request) noexcept {
    for (std::size_t i = 0; i < events_; ++i) ioctl(fds_[i], request, 0);
    return true;
  }

  /// Of the thread that begins, one for each processor, also those that it may not use: threads it
  /// starts may.
  int open_own_events() noexcept {
    const auto processors = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
    int error = ENODEV;
    for (int cpu = 0; cpu < processors && rings_ < most_events; ++cpu) {
      error = open_with_ring(attribute(), 0, cpu);
      if (error == 0 || error == ENODEV) continue;  // ENODEV: switched off
      if (rings_ == 0) return error;
      note_unsampled(error);
    }
    return rings_ > 0 ? 0 : error;
  }

  /// Where that would take too many descriptors, an event a thread, which cannot be inherited.
  void open_other_threads() noexcept {
    std::size_t threads = 0;
    for_each_other_thread([&](pid_t) { ++threads; });
    rlimit descriptors{};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    const bool few =
        (threads + 1) * rings_ <= most_events && (threads + 1) * rings_ <= descriptors.rlim_cur / 2;
    for_each_other_thread([&](pid_t tid) {
      const int error = few ? open_into_rings(tid) : open_alone(tid);
      if (error != 0 && error != ESRCH) note_unsampled(error);  // ESRCH: it has ended
    });
  }

  int open_into_rings(pid_t tid) noexcept {
    for (std::size_t i = 0; i < rings_; ++i) {
      const int fd = open_event(attribute(), tid, cpus_[i]);
      if (fd < 0) return -fd;
      ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, fds_[i]);
      fds_[events_++] = fd;
    }
    return 0;
  }

  int open_alone(pid_t tid) noexcept {
    if (events_ == most_events) return EMFILE;
    perf_event_attr attr = attribute();
    attr.inherit = 0;
    return open_with_ring(attr, tid, -1);
  }

  void note_unsampled(int error) noexcept {
    ++unsampled_;
    unsampled_error_ = error;
  }

  template <class Each>
  static void for_each_other_thread(Each&& each) noexcept {
    for_each_thread([&](pid_t tid) {
      if (tid != gettid() && !is_own_thread(tid)) each(tid);
    });
  }

  /// The session's drain thread may have been started later, and so be sampled.
  void note_own_threads() noexcept {
    for_each_thread([&](pid_t tid) {
      if (is_own_thread(tid)) file_.own_thread(static_cast<std::uint32_t>(tid));
    });
  }

  /// By its name.
  static bool is_own_thread(pid_t tid) noexcept {
    char path[64];
    char name[32] = {};
    std::snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t got = read(fd, name, sizeof(name) - 1);
    close(fd);
    return got > 0 &&
           (std::strcmp(name, "lotus-drain\n") == 0 || std::strcmp(name, "lotus-sampler\n") == 0);
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

  /// Events with a ring of their own come first. Returns 0 or errno.
  int open_with_ring(const perf_event_attr& attr, pid_t tid, int cpu) noexcept {
    const int fd = open_event(attr, tid, cpu);
    if (fd < 0) return -fd;
    const int error = ring_[rings_].map(fd, ring_pages);
    if (error != 0) {
      close(fd);
      return error;
    }
    cpus_[rings_++] = cpu;
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

  /// Notes what is mapped, if objects were loaded or unloaded since the last time. What is mapped
  /// while samples are taken, the kernel notes.
  void note_modules() noexcept {
    std::uint64_t changes = 0;
    iterate_objects(
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
        for (; count < rings_; ++count) {
          waits[count] = {gone_[count] ? -1 : fds_[count], POLLIN, 0};
        }
      }
      if (count == 0) return;
      poll(waits, static_cast<nfds_t>(count), some_gone_ ? 20 : 500);
      const locked hold{guard_};
      drain();
      // poll() returns at once for the event of a thread that is gone; its ring may be that of
      // others too.
      for (std::size_t i = 0; i < count; ++i) {
        if ((waits[i].revents & (POLLHUP | POLLERR)) != 0) some_gone_ = gone_[i] = true;
      }
    }
  }

  /// A child does not have the rings, and its parent's events are not its to switch. What it runs
  /// is sampled on with its parent's thread that forked it.
  void forget_parent() noexcept {
    if (begun_in_ == 0 || begun_in_ == getpid()) return;
    for (std::size_t i = 0; i < events_; ++i) close(fds_[i]);
    close(wake_);
    file_.forget_parent();
    const sample_file own = file_;
    new (this) sampler{interval_ns_};
    file_ = own;
  }

  /// A child that was forked while this was being registered does it at its first use.
  static void after_fork_in_child() noexcept { instance().forget_parent(); }

  std::uint64_t interval_ns_;
  pid_t begun_in_ = 0;
  int wake_ = -1;
  pid_t drain_tid_ = 0;
  std::size_t events_ = 0;
  std::size_t rings_ = 0;
  int fds_[most_events] = {};    ///< of events
  int cpus_[most_events] = {};   ///< of rings
  bool gone_[most_events] = {};  ///< of rings; this and the next for the drain thread only
  bool some_gone_ = false;
  perf_ring ring_[most_events];
  std::size_t unsampled_ = 0;
  int unsampled_error_ = 0;
  std::uint64_t module_changes_ = 0;

  mutex guard_;  ///< of rings and file
  sample_file file_;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_SAMPLER_HPP
