// Provides the built-in sampler, which samples this process's threads with perf_event_open(2) and
// writes the samples to a file next to the logs.
#ifndef LOTUS_SAMPLING_SAMPLER_HPP
#define LOTUS_SAMPLING_SAMPLER_HPP

#include <link.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "lotus/base/fork.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/base/process_threads.hpp"
#include "lotus/config.hpp"
#include "lotus/sampling/sample_file.hpp"
#include "lotus/sampling/sampling_events.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Samples the threads of this process. A process has one sampler, which is never destroyed.
class sampler {
 public:
  static sampler& instance() noexcept {
    // An atomic pointer is used and not a static sampler: a child that is forked while another
    // thread initializes a static variable would wait forever.
    static std::atomic<sampler*> the_sampler{nullptr};
    sampler* known = the_sampler.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto* fresh = new (map_memory(sizeof(sampler))) sampler;
    return the_sampler.compare_exchange_strong(known, fresh) ? *fresh : *known;
  }

  /// Opens all sampling events without enabling them. Returns false, after reporting the reason, if
  /// the kernel forbids sampling.
  LOTUS_DETAIL_COLD bool begin(std::uint64_t interval_ns) noexcept {
    interval_ns_ = interval_ns;
    begun_in_ = getpid();
    pthread_t thread{};
    // The sampler's own thread is started before the events are opened, so that it is not sampled.
    if (pthread_create(&thread, nullptr, drain_loop, this) == 0) {
      pthread_detach(thread);
      while (!drain_thread_runs_.load(std::memory_order_acquire)) sched_yield();
    }
    if (!events_.open(interval_ns)) return false;
    static std::atomic<bool> handles_forks{false};
    if (!handles_forks.exchange(true)) pthread_atfork(nullptr, nullptr, after_fork_in_child);
    events_are_open_.store(1, std::memory_order_release);
    syscall(SYS_futex, &events_are_open_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    return true;
  }

  /// Enables sampling. In a forked child, first opens events for the child.
  bool resume() noexcept {
    forget_parent();
    if (begun_in_ == 0 && !begin(interval_ns_)) return false;
    note_modules();
    events_.enable();
    return true;
  }
  bool pause() noexcept {
    forget_parent();
    events_.disable();
    return true;
  }

  /// Records an execution of a LOTUS_MAP_REGION, and writes the samples so far, because the program
  /// may end without a call of finish().
  void region(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
    forget_parent();
    const locked hold{guard_};
    drain();
    file_.region(name, begin_ns, end_ns);
  }

  /// Ends sampling, writes the remaining samples and closes the file.
  void finish() noexcept {
    forget_parent();
    const locked hold{guard_};
    if (!events_.are_open()) return;
    events_.disable();
    drain();
    file_.modules();
    note_own_threads();
    file_.finish();
    events_.close();
  }

  std::uint64_t interval_ns() const noexcept { return interval_ns_; }

 private:
  explicit sampler(std::uint64_t interval_ns = 0) noexcept : interval_ns_{interval_ns} {}

  /// Records which threads belong to the library, so that their samples can be ignored. The
  /// session's drain thread is sampled too if it was started after the events were opened.
  void note_own_threads() noexcept {
    for_each_thread([&](pid_t tid) {
      if (is_own_thread(tid)) file_.own_thread(static_cast<std::uint32_t>(tid));
    });
  }

  void drain() noexcept {
    events_.drain([&](const char* data, std::size_t bytes) {
      file_.begin(interval_ns_);
      file_.append(data, bytes);
    });
  }

  /// Records all mapped code if shared objects were loaded or unloaded since the last call. The
  /// kernel itself records code that is mapped while sampling is enabled.
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
    s.drain_thread_runs_.store(true, std::memory_order_release);
    while (s.events_are_open_.load(std::memory_order_acquire) == 0) {
      syscall(SYS_futex, &s.events_are_open_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    }
    s.drain_for_ever();
    return nullptr;
  }

  void drain_for_ever() noexcept {
    auto* waits = static_cast<pollfd*>(map_memory(sampling_events::most * sizeof(pollfd)));
    if (waits == nullptr) return;
    for (;;) {
      std::size_t count = 0;
      {
        const locked hold{guard_};
        count = events_.to_wait_for(waits);
      }
      if (count == 0) return;
      poll(waits, static_cast<nfds_t>(count), events_.some_gone() ? 20 : 500);
      const locked hold{guard_};
      drain();
      events_.note_gone(waits, count);
    }
  }

  /// In a forked child, resets this object, so that it samples the child and no longer the parent.
  /// The child does not inherit the rings, and must not enable or disable its parent's events.
  /// Those events still sample the child's work as part of the thread that forked it.
  void forget_parent() noexcept {
    if (begun_in_ == 0 || begun_in_ == getpid()) return;
    events_.close_descriptors();
    file_.forget_parent();
    const sample_file own = file_;
    new (this) sampler{interval_ns_};
    file_ = own;
  }

  /// The fork handler for children. In a child that was forked before the handler was registered,
  /// the first use of the sampler calls forget_parent() instead.
  static void after_fork_in_child() noexcept { instance().forget_parent(); }

  std::uint64_t interval_ns_;
  pid_t begun_in_ = 0;
  std::atomic<bool> drain_thread_runs_{false};
  std::atomic<std::uint32_t> events_are_open_{0};
  std::uint64_t module_changes_ = 0;

  mutex guard_;  ///< protects events_ and file_
  sampling_events events_;
  sample_file file_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_SAMPLER_HPP
