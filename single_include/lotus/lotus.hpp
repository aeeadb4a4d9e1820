// Generated from include/lotus by tools/cmake/amalgamate.cmake: do not edit.
// SPDX-License-Identifier: MIT
//
// MIT License
//
// Copyright (c) 2026 The Lotus for C++ authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
// SOFTWARE.

// Lotus: tells a C++ data-preprocessing pipeline where its time goes.
#ifndef LOTUS_LOTUS_HPP
#define LOTUS_LOTUS_HPP

// What happens to batches: preprocessed and waited for (spans), arrived, consumed, queued (events).
#ifndef LOTUS_BATCH_HPP
#define LOTUS_BATCH_HPP

#include <cstdint>

// Compile-time knobs, attributes and the inline namespace.
#ifndef LOTUS_CONFIG_HPP
#define LOTUS_CONFIG_HPP

// The one place the version is written; CMake reads these three lines.
#ifndef LOTUS_VERSION_HPP
#define LOTUS_VERSION_HPP

#define LOTUS_VERSION_MAJOR 0
#define LOTUS_VERSION_MINOR 1
#define LOTUS_VERSION_PATCH 0

#endif  // LOTUS_VERSION_HPP

#if !defined(__linux__) || !(defined(__x86_64__) || defined(__aarch64__))
  #error "lotus supports Linux on x86-64 and aarch64"
#endif

// Two versions of the library in one program must not share symbols, hence the inline namespace.
#define LOTUS_DETAIL_CONCAT_(a, b) a##b
#define LOTUS_DETAIL_CONCAT(a, b) LOTUS_DETAIL_CONCAT_(a, b)
#define LOTUS_DETAIL_ABI_(major, minor) v##major##_##minor
#define LOTUS_DETAIL_ABI(major, minor) LOTUS_DETAIL_ABI_(major, minor)
#define LOTUS_DETAIL_NAMESPACE_BEGIN \
  namespace lotus {                  \
  inline namespace LOTUS_DETAIL_ABI(LOTUS_VERSION_MAJOR, LOTUS_VERSION_MINOR) {
#define LOTUS_DETAIL_NAMESPACE_END \
  }                                \
  }

#define LOTUS_DETAIL_STRINGIZE_(x) #x
#define LOTUS_DETAIL_STRINGIZE(x) LOTUS_DETAIL_STRINGIZE_(x)
#define LOTUS_DETAIL_VERSION_STRING           \
  LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MAJOR) \
  "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MINOR) "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_PATCH)

#define LOTUS_DETAIL_LIKELY(x) __builtin_expect(static_cast<bool>(x), 1)
#define LOTUS_DETAIL_UNLIKELY(x) __builtin_expect(static_cast<bool>(x), 0)
#define LOTUS_DETAIL_ALWAYS_INLINE inline __attribute__((always_inline))
#define LOTUS_DETAIL_COLD __attribute__((noinline, cold))
// State that each shared object has for itself, and the functions that touch it. Without it the
// linker would merge them between objects built with default visibility, and STB_GNU_UNIQUE would
// keep a plugin from unloading.
#define LOTUS_DETAIL_PER_MODULE __attribute__((visibility("hidden")))

#endif  // LOTUS_CONFIG_HPP

// How all shared objects of one process find the one session.
//
// Neither an inline variable nor dlsym finds it when objects are built with hidden visibility and
// the program exports nothing. So the first object to ask puts a hub into a mapping with a name
// that everyone can see in /proc/self/maps.
#ifndef LOTUS_PROCESS_HPP
#define LOTUS_PROCESS_HPP

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <string_view>

// What the dynamic loader is asked, and how a fork is kept away from that.
#ifndef LOTUS_LOADER_HPP
#define LOTUS_LOADER_HPP

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

// Locks that survive signals and fork, and memory that does not come from malloc.
#ifndef LOTUS_LOCK_HPP
#define LOTUS_LOCK_HPP

#include <time.h>

#include <cerrno>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Blocks every signal of this thread for its lifetime, and cancellation; errno is at its end what
/// it was. All slow paths run inside one, so a handler never meets a lock that its own thread
/// holds, no lock is left held by a thread that was cancelled, and a scope's end changes no errno
/// that somebody is about to look at. Two system calls.
class signals_blocked {
 public:
  signals_blocked() noexcept : errno_{errno} {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before_);
  }
  ~signals_blocked() {
    pthread_setcancelstate(cancel_before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = errno_;
  }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  int errno_;
  int cancel_before_ = 0;
  sigset_t before_;
};

/// A mutex that is trivially destructible, as it lives in memory that is never torn down.
class mutex {
 public:
  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }
  /// False where another thread kept it for a second.
  bool lock_within_a_second() noexcept {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    ++until.tv_sec;
    return pthread_mutex_timedlock(&mutex_, &until) == 0;
  }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

class locked {
 public:
  explicit locked(mutex& m) noexcept : mutex_{m} { mutex_.lock(); }
  ~locked() { mutex_.unlock(); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;

 private:
  mutex& mutex_;
};

/// What the first caller finds, for all callers. Those who come while it is being found wait for a
/// second and then go on with `meanwhile`: where finding loads a library, the thread that waits may
/// be a static constructor, which runs under the dynamic loader's lock, and both would wait for
/// ever. So do, at once, processes that were forked meanwhile: in them nobody goes on finding.
/// Trivially destructible. Thread safety: all.
template <class T>
class found_once {
 public:
  template <class Find>
  T get(Find&& find, T meanwhile) noexcept {
    if (found_.load(std::memory_order_acquire)) return value_;
    const pid_t finder = finder_.load(std::memory_order_relaxed);
    if (finder != 0 && finder != getpid()) return meanwhile;
    if (!mutex_.lock_within_a_second()) return meanwhile;
    if (!found_.load(std::memory_order_relaxed)) {
      finder_.store(getpid(), std::memory_order_relaxed);
      value_ = find();
      found_.store(true, std::memory_order_release);
    }
    mutex_.unlock();
    return value_;
  }

  /// What has been found by now, or `meanwhile`. Never waits.
  T known(T meanwhile) const noexcept {
    return found_.load(std::memory_order_acquire) ? value_ : meanwhile;
  }

 private:
  std::atomic<bool> found_{false};
  std::atomic<pid_t> finder_{0};  ///< the process that is finding, or has found
  mutex mutex_;
  T value_{};
};

/// Fresh zeroed private memory straight from the kernel, so that a signal handler which interrupted
/// malloc may still record. Null when there is none.
inline void* map_memory(std::size_t bytes) noexcept {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_LOCK_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// What must not be underway on any thread while one forks, as the child would find it so for ever.
/// One for each shared object; trivially destructible.
struct at_forks {
  mutex loader;  ///< held from before a fork until after it

  /// Called with `loader` held and signals blocked; may be null. Set, together, under it.
  void (*before)() noexcept = nullptr;
  void (*after_in_parent)() noexcept = nullptr;
  void (*after_in_child)() noexcept = nullptr;

  std::atomic<pid_t> registering{0};  ///< the process that is at it, or `registered`
  unsigned times_registered = 0;      ///< as seen by the fork that is underway
  bool before_was_called = false;     ///< a handler of the program may make the session meanwhile
  sigset_t signals_before{};          ///< of the thread that forks

  static constexpr pid_t registered = -1;
};
LOTUS_DETAIL_PER_MODULE inline at_forks this_module_at_forks;

/// Whether this thread is within a fork, or has just been forked, and so has all locks: scopes in
/// the program's own fork handlers must not wait for them.
LOTUS_DETAIL_PER_MODULE inline thread_local bool this_thread_forks = false;

LOTUS_DETAIL_PER_MODULE inline void prepare_fork() noexcept {
  at_forks& forks = this_module_at_forks;
  if (this_thread_forks) {
    ++forks.times_registered;
    return;
  }
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  forks.loader.lock();
  forks.signals_before = before;
  this_thread_forks = true;
  forks.times_registered = 1;
  forks.before_was_called = forks.before != nullptr;
  if (forks.before_was_called) forks.before();
}

LOTUS_DETAIL_PER_MODULE inline void resume_after_fork(void (*whole)() noexcept) noexcept {
  at_forks& forks = this_module_at_forks;
  if (--forks.times_registered > 0) return;
  if (whole != nullptr) {
    if (!forks.before_was_called) forks.before();
    whole();
  }
  const sigset_t before = forks.signals_before;
  this_thread_forks = false;
  forks.loader.unlock();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Returns when the handlers are in place. A child that was forked while its parent's thread was at
/// it does it anew: then they may be there twice.
LOTUS_DETAIL_PER_MODULE inline void register_at_forks() noexcept {
  at_forks& forks = this_module_at_forks;
  const pid_t process = getpid();
  for (pid_t seen = 0; seen != at_forks::registered;) {
    seen = forks.registering.load(std::memory_order_acquire);
    if (seen == process) sched_yield();
    if (seen == process || seen == at_forks::registered) continue;
    if (!forks.registering.compare_exchange_strong(seen, process)) continue;
    pthread_atfork(
        prepare_fork, [] { resume_after_fork(this_module_at_forks.after_in_parent); },
        [] { resume_after_fork(this_module_at_forks.after_in_child); });
    forks.registering.store(at_forks::registered, std::memory_order_release);
  }
}

/// When the object is loaded, and so before there are threads in most programs: a fork that is
/// underway on another thread may not see handlers that come now.
LOTUS_DETAIL_PER_MODULE inline const bool registered_at_load = (register_at_forks(), true);

/// dl_iterate_phdr(3), but never while another thread forks: glibc leaves the lock that it takes to
/// chance in a child. `each` runs under that lock, which all objects of the process share.
LOTUS_DETAIL_PER_MODULE inline void iterate_objects(int (*each)(dl_phdr_info*, std::size_t, void*),
                                                    void* result) noexcept {
  const signals_blocked quiet;
  // Again, for scopes of static constructors that run earlier; and it keeps the variable in.
  if (!registered_at_load) register_at_forks();
  const bool held = this_thread_forks;
  if (!held) this_module_at_forks.loader.lock();
  dl_iterate_phdr(each, result);
  if (!held) this_module_at_forks.loader.unlock();
}

/// Keeps the shared object that holds `code` in memory, also after dlclose: drain thread, fork
/// handlers and other objects go on calling it.
inline void pin_module_of(const void* code) noexcept {
  Dl_info info{};
  void* extra = nullptr;
  if (dladdr1(code, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) return;
  const char* path = static_cast<const link_map*>(extra)->l_name;
  if (path == nullptr || *path == '\0') return;  // the program itself
  dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_LOADER_HPP

// What a program may choose when it starts recording.
#ifndef LOTUS_OPTIONS_HPP
#define LOTUS_OPTIONS_HPP

#include <string>

LOTUS_DETAIL_NAMESPACE_BEGIN

/// What a thread does whose ring is full.
enum class full_ring {
  drain,  ///< it writes its records to the log itself: nothing is lost
  drop,   ///< it drops the new record and counts it in dropped(): it never waits for the disk
};

struct options {
  /// Directory and name with which all logs of the run begin: "run/lotustrace_log" makes
  /// run/lotustrace_log_main_pid_<N> and run/lotustrace_log_worker_pid_<N>.
  std::string log_file = "lotustrace_log";
  full_ring when_full = full_ring::drain;
  /// Records a thread's ring holds, 24 bytes each; rounded up to a power of two.
  std::uint32_t ring_records = 8192;
  /// The longest that a record lies in its ring before it is text, in milliseconds.
  std::uint32_t drain_interval_ms = 100;
  /// Memory for records that the disk does not take at the moment; beyond it they are dropped and
  /// counted.
  std::size_t backlog_bytes = std::size_t{256} << 20;
  /// Receives each message as one line without newline; null: stderr, behind "lotus: ". Called with
  /// the library's locks held and signals blocked: must not record, start or stop.
  void (*on_message)(const char* message) = nullptr;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_OPTIONS_HPP

// What one finished span or event is: the kinds and the 24-byte record.
#ifndef LOTUS_RECORD_HPP
#define LOTUS_RECORD_HPP

#include <type_traits>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// What a record tells. The numbers stand in ring files: append, never renumber.
enum class event_kind : std::uint8_t {
  none = 0,
  operation = 1,           ///< value: id of the name
  batch_preprocessed = 2,  ///< value of this and of all that follow: batch number
  batch_wait = 3,
  batch_arrived = 4,  ///< out of order
  batch_consumed = 5,
  batch_queued = 6,
};

/// Kind and value (a name's id or a batch number) in one word.
class record_tag {
 public:
  static constexpr unsigned value_bits = 56;

  constexpr record_tag() noexcept = default;
  constexpr record_tag(event_kind kind, std::uint64_t value) noexcept
      : word_{(static_cast<std::uint64_t>(kind) << value_bits) |
              (value & ((std::uint64_t{1} << value_bits) - 1))} {}

  constexpr event_kind kind() const noexcept {
    return static_cast<event_kind>(word_ >> value_bits);
  }
  constexpr std::uint64_t value() const noexcept {
    return word_ & ((std::uint64_t{1} << value_bits) - 1);
  }
  constexpr bool empty() const noexcept { return word_ == 0; }

 private:
  std::uint64_t word_ = 0;
};

/// One finished span; an event has begin == end. Written once, when the span ends.
struct record {
  std::uint64_t begin_ticks;
  std::uint64_t end_ticks;
  record_tag tag;
};
static_assert(sizeof(record) == 24 && std::is_trivially_copyable_v<record>,
              "records are copied into shared memory as they are");

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

struct producer;
struct module_state;

/// lotus::options without the std::string, which objects may have been built with different ones
/// of.
struct start_request {
  const char* log_file;
  std::size_t log_file_bytes;
  full_ring when_full;
  std::uint32_t ring_records;
  std::uint32_t drain_interval_ms;
  std::size_t backlog_bytes;
  void (*on_message)(const char*);
};

/// What the session does for the objects that share it. The code is that of the object which made
/// the hub; it is never unloaded.
struct services {
  producer* (*this_thread)() noexcept;
  void (*push_slow)(producer&, const record&) noexcept;
  void (*push_nested)(producer&, const record&) noexcept;
  std::uint32_t (*intern)(std::string_view) noexcept;
  bool (*start)(const start_request&) noexcept;
  void (*stop)() noexcept;
  void (*flush)() noexcept;
  std::uint64_t (*dropped)() noexcept;
  /// A shared object wants to know from now on whether recording is on.
  /// @param environment_counts  whether LOTUS_LOG_FILE may start recording now.
  void (*join)(module_state&, bool environment_counts) noexcept;
  void (*leave)(module_state&) noexcept;
  /// A span with this tag begins, and ends, on a profiler's timeline; only in recording::annotated.
  void (*begin_task)(record_tag) noexcept;
  void (*end_task)() noexcept;
};

enum class recording : std::uint32_t {
  off = 0,
  on = 1,
  unknown = 2,    ///< this object has not asked yet
  annotated = 3,  ///< scopes show on a profiler's timeline too, and are logged if recording is on
};

/// What one shared object knows of the session.
struct module_state {
  std::atomic<recording> mode{recording::unknown};
  std::atomic<bool> hardware_clock{true};
  std::atomic<const services*> hub{nullptr};
  module_state* next = nullptr;  ///< the session's list

  constexpr module_state() noexcept = default;
  module_state(const module_state&) = delete;
  module_state& operator=(const module_state&) = delete;
  ~module_state() {
    if (const services* s = hub.load(std::memory_order_acquire)) s->leave(*this);
  }
};

LOTUS_DETAIL_PER_MODULE inline module_state this_module;

/// Makes the session and returns its services; session.hpp.
LOTUS_DETAIL_PER_MODULE const services* make_services() noexcept;

/// Bump the number whenever services, start_request, module_state, producer or record change.
inline constexpr char hub_name[] = "lotus-hub-2-v" LOTUS_DETAIL_STRINGIZE(
    LOTUS_VERSION_MAJOR) "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MINOR) ";";

/// The address of the mapping called `name` of this process, or null. Allocates nothing.
inline void* find_mapping(const char* name) noexcept {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  char text[8192];
  std::size_t held = 0;
  void* found = nullptr;
  ssize_t got = 0;
  while (found == nullptr && (got = read(fd, text + held, sizeof(text) - 1 - held)) > 0) {
    held += static_cast<std::size_t>(got);
    text[held] = '\0';
    char* line = text;
    while (char* end = static_cast<char*>(
               std::memchr(line, '\n', held - static_cast<std::size_t>(line - text)))) {
      *end = '\0';
      if (std::strstr(line, name) != nullptr && std::strstr(line, "/memfd:") != nullptr) {
        found = reinterpret_cast<void*>(strtoull(line, nullptr, 16));
        break;
      }
      line = end + 1;
    }
    held -= static_cast<std::size_t>(line - text);
    if (held == sizeof(text) - 1) held = 0;  // one absurdly long line
    std::memmove(text, line, held);
  }
  close(fd);
  return found;
}

struct hub_page {
  std::atomic<const services*> table;
};

/// The hub of the process, made if there is none. Runs under the loader's lock, which all objects
/// share, so two threads never make two.
LOTUS_DETAIL_PER_MODULE inline int find_or_make_hub(dl_phdr_info*, std::size_t,
                                                    void* result) noexcept {
  auto* table = static_cast<const services**>(result);
  if (void* page = find_mapping(hub_name)) {
    *table = static_cast<hub_page*>(page)->table.load(std::memory_order_acquire);
    return 1;
  }
  *table = make_services();
  const int fd = memfd_create(hub_name, MFD_CLOEXEC);
  if (fd < 0) return 1;  // every object keeps a session for itself then
  if (ftruncate(fd, sizeof(hub_page)) == 0) {
    // Private: a forked child has the hub too, but not its parent's.
    void* page = mmap(nullptr, sizeof(hub_page), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (page != MAP_FAILED) {
      static_cast<hub_page*>(page)->table.store(*table, std::memory_order_release);
    }
  }
  close(fd);
  return 1;
}

/// The session's services; makes the session at the first call of the process.
LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline const services& join_session(
    bool environment_counts) noexcept {
  module_state& m = this_module;
  const services* s = m.hub.load(std::memory_order_acquire);
  if (s != nullptr && m.mode.load(std::memory_order_relaxed) != recording::unknown) return *s;
  const signals_blocked quiet;
  if (s == nullptr) iterate_objects(find_or_make_hub, static_cast<void*>(&s));
  s->join(m, environment_counts);
  return *s;
}

LOTUS_DETAIL_ALWAYS_INLINE recording recording_mode() noexcept {
  return this_module.mode.load(std::memory_order_relaxed);
}

/// Whether this object's scopes have to be measured.
LOTUS_DETAIL_ALWAYS_INLINE bool is_recording() noexcept {
  const recording mode = recording_mode();
  if (mode == recording::off) return false;
  if (LOTUS_DETAIL_LIKELY(mode == recording::on)) return true;
  join_session(true);
  return recording_mode() != recording::off;
}

LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void begin_annotation(record_tag tag) noexcept {
  if (!tag.empty()) join_session(true).begin_task(tag);
}
LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void end_annotation(record_tag tag) noexcept {
  if (!tag.empty()) join_session(true).end_task();
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_PROCESS_HPP

// RAII scopes: one record for the time between two braces.
#ifndef LOTUS_SCOPE_HPP
#define LOTUS_SCOPE_HPP

// This thread's ring, and the two rare calls behind it: none yet, full.
#ifndef LOTUS_THREAD_HPP
#define LOTUS_THREAD_HPP

// Raw ticks, and how ticks become nanoseconds since the Unix epoch.
#ifndef LOTUS_CLOCK_HPP
#define LOTUS_CLOCK_HPP

#if defined(__x86_64__)
  #include <cpuid.h>
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline std::int64_t clock_ns(clockid_t id) noexcept {
  timespec t{};
  clock_gettime(id, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

/// The processor's own counter: the TSC, or cntvct_el0. About 10 ns, no system call.
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t hardware_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  std::uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

/// Whether hardware_ticks() advances at one rate on every core: CPUID's invariant-TSC bit (Intel
/// SDM 17.17.1, AMD APM 3 E.4.7), unless the kernel has judged the TSC unstable and withdrawn it.
/// The aarch64 counter always does (Arm ARM D11).
inline bool hardware_ticks_invariant() noexcept {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) == 0 || (edx & (1U << 8)) == 0) return false;
  const int fd = open("/sys/devices/system/clocksource/clocksource0/available_clocksource",
                      O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  char sources[256] = {};
  const ssize_t got = read(fd, sources, sizeof(sources) - 1);
  close(fd);
  // kvm-clock and Hyper-V's clock are themselves read from the TSC.
  return got <= 0 || std::strstr(sources, "tsc") != nullptr ||
         std::strstr(sources, "kvm-clock") != nullptr || std::strstr(sources, "hyperv") != nullptr;
#else
  return true;
#endif
}

/// One moment read on three clocks.
struct clock_anchor {
  std::uint64_t ticks;
  std::int64_t elapsed_ns;  ///< of a clock that is never stepped and counts when ticks do
  std::int64_t realtime_ns;
};

/// A stretch of the map from ticks to time: time = start_ns + (ticks - start_ticks) * rate.
struct clock_segment {
  std::uint64_t start_ticks;
  std::int64_t start_ns;   ///< nanoseconds since the Unix epoch
  std::uint64_t rate;      ///< nanoseconds per tick, fixed point with 2^32 = 1
  std::int64_t jumped_ns;  ///< sum of the wall clock's forward steps followed so far

  std::int64_t to_ns(std::uint64_t ticks) const noexcept {
    __extension__ using wide = __int128;
    const auto distance = static_cast<std::int64_t>(ticks - start_ticks);
    return start_ns +
           static_cast<std::int64_t>((wide{distance} * static_cast<std::int64_t>(rate)) >> 32);
  }
};

/// Ticks to nanoseconds since the epoch, as a continuous line of segments, so that spans which
/// share a clock read still meet exactly, whichever drain turned them into text.
///
/// CLOCK_REALTIME is followed as long as it only drifts: each tie() bends the line towards it. When
/// it is stepped forward, times jump ahead from then on; when it is stepped back, times go on as
/// before, so that starts stay in order. Durations never contain a step.
///
/// Trivially copyable, so that it can stand in a ring file. Thread safety: none; the session locks.
class clock_map {
 public:
  static constexpr std::int64_t step_ns = 1'000'000;  ///< beyond this a difference is a step

  /// Starts the line at `first`; `second`, some ms later, gives the first rate.
  void begin(const clock_anchor& first, const clock_anchor& second) noexcept {
    segments_[0] = {first.ticks, first.realtime_ns, rate_between(first, second), 0};
    count_ = 1;
    anchors_[0] = first;
    anchor_count_ = 1;
    held_back_ns_ = 0;
  }

  /// Adds an anchor. Returns the step of the wall clock seen now in ns, or 0.
  std::int64_t tie(const clock_anchor& now) noexcept {
    const clock_segment last = current();
    if (now.ticks <= last.start_ticks) return 0;
    const std::int64_t target_ns = now.realtime_ns + held_back_ns_;
    const std::int64_t here_ns = last.to_ns(now.ticks);
    const std::int64_t error_ns = target_ns - here_ns;
    const std::uint64_t rate = rate_between(oldest_anchor(), now);
    clock_segment next{now.ticks, here_ns, rate, last.jumped_ns};
    std::int64_t stepped_ns = 0;
    if (error_ns > step_ns) {
      next.start_ns += error_ns;
      next.jumped_ns += error_ns;
      stepped_ns = error_ns;
    } else if (error_ns < -step_ns) {
      held_back_ns_ -= error_ns;
      stepped_ns = error_ns;
    } else {
      next.rate = bent_rate(rate, error_ns, here_ns - last.start_ns);
    }
    remember(now);
    append(next);
    return stepped_ns;
  }

  const clock_segment& current() const noexcept { return segments_[count_ - 1]; }

  /// The segment that holds `ticks`; the first one for anything older.
  const clock_segment& at(std::uint64_t ticks) const noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = count_;
    while (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      (segments_[middle].start_ticks <= ticks ? low : high) = middle;
    }
    return segments_[low];
  }

  /// Whether begin() has been here; for maps read from a file.
  bool valid() const noexcept { return count_ >= 1 && count_ <= capacity; }

 private:
  static constexpr std::uint32_t capacity = 512;
  static constexpr std::uint32_t anchor_capacity = 16;

  /// No step of the wall clock ever enters the rate.
  static std::uint64_t rate_between(const clock_anchor& a, const clock_anchor& b) noexcept {
    __extension__ using wide = unsigned __int128;
    if (b.ticks <= a.ticks || b.elapsed_ns <= a.elapsed_ns) return std::uint64_t{1} << 32;
    const auto elapsed_ns = static_cast<std::uint64_t>(b.elapsed_ns - a.elapsed_ns);
    return static_cast<std::uint64_t>((wide{elapsed_ns} << 32) / (b.ticks - a.ticks));
  }

  /// The rate that makes good `error_ns` within as long as it took to arise; at most 1000 ppm off.
  static std::uint64_t bent_rate(std::uint64_t rate, std::int64_t error_ns,
                                 std::int64_t since_ns) noexcept {
    const std::int64_t span_ns = since_ns > 5'000'000 ? since_ns : 5'000'000;
    std::int64_t parts_per_billion = error_ns * 1'000'000'000 / span_ns;
    if (parts_per_billion > 1'000'000) parts_per_billion = 1'000'000;
    if (parts_per_billion < -1'000'000) parts_per_billion = -1'000'000;
    __extension__ using wide = __int128;
    const auto straight = static_cast<std::int64_t>(rate);
    return static_cast<std::uint64_t>(
        straight + static_cast<std::int64_t>(wide{straight} * parts_per_billion / 1'000'000'000));
  }

  const clock_anchor& oldest_anchor() const noexcept {
    return anchors_[anchor_count_ <= anchor_capacity ? 0 : anchor_count_ % anchor_capacity];
  }

  void remember(const clock_anchor& a) noexcept {
    anchors_[anchor_count_ % anchor_capacity] = a;
    ++anchor_count_;
  }

  void append(const clock_segment& s) noexcept {
    if (count_ == capacity) thin_out();
    segments_[count_++] = s;
  }

  /// Drops every second one of the older three quarters: a long run keeps all of its past, the old
  /// part more coarsely. Never across a step, which must stay where it was.
  void thin_out() noexcept {
    std::uint32_t kept = 1;
    for (std::uint32_t i = 1; i < capacity; ++i) {
      const bool step = segments_[i].jumped_ns != segments_[i - 1].jumped_ns ||
                        (i + 1 < capacity && segments_[i + 1].jumped_ns != segments_[i].jumped_ns);
      if (i % 2 == 0 || i >= capacity / 4 * 3 || step) segments_[kept++] = segments_[i];
    }
    for (std::uint32_t i = 0; i + 1 < kept; ++i) straighten(segments_[i], segments_[i + 1]);
    // Nothing but steps: forget the oldest, as the newest matter most.
    if (kept == capacity) std::memmove(segments_, segments_ + 1, --kept * sizeof(clock_segment));
    count_ = kept;
  }

  /// Makes `s` end where `next` starts, since the segment that stood between them is gone.
  static void straighten(clock_segment& s, const clock_segment& next) noexcept {
    if (s.jumped_ns != next.jumped_ns) return;
    __extension__ using wide = unsigned __int128;
    const auto rise_ns = static_cast<std::uint64_t>(next.start_ns - s.start_ns);
    s.rate = static_cast<std::uint64_t>((wide{rise_ns} << 32) / (next.start_ticks - s.start_ticks));
  }

  clock_segment segments_[capacity];
  std::uint32_t count_;
  clock_anchor anchors_[anchor_capacity];
  std::uint32_t anchor_count_;
  std::int64_t held_back_ns_;  ///< how far the wall clock was stepped back while recording
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_CLOCK_HPP

// What stands in a ring file: everything that is needed to write the lines of a process that died.
//
// A ring file is a header, then blocks, each as long as its header says, up to the first of no
// kind.
#ifndef LOTUS_LAYOUT_HPP
#define LOTUS_LAYOUT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr char ring_file_magic[8] = {'L', 'O', 'T', 'U', 'S', 'R', 'N', 'G'};
inline constexpr std::uint32_t ring_file_layout = 1;
inline constexpr std::size_t least_page_bytes = 4096;  ///< blocks are multiples of it
inline constexpr std::size_t max_prefix_bytes = 200;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "processes share these");

struct ring_file_header {
  char magic[8];
  std::uint32_t layout;
  std::uint32_t header_bytes;  ///< where the first block begins
  std::uint32_t pid;
  std::uint32_t clock_ticks_are_ns;  ///< 1 where the hardware counter was not used
  char version[16];
  char prefix[max_prefix_bytes + 1];  ///< of the logs, which lie in the same directory
  std::atomic<std::uint32_t> clock_index;
  clock_map clocks[2];  ///< clocks[clock_index] is whole at any instant
};

enum class block_kind : std::uint32_t { none = 0, ring = 1, names = 2 };

struct block_header {
  std::atomic<block_kind> kind;  ///< stored last, so a block is there whole or not at all
  std::uint32_t unused;
  std::uint64_t bytes;  ///< of the block, this header included
};

/// The two logs of a thread.
enum class log_role : std::uint32_t { main = 0, worker = 1 };
inline constexpr std::size_t log_roles = 2;

/// How far a log file is known to hold whole, committed lines.
struct log_position {
  std::uint64_t inode;   ///< 0: not written yet
  std::uint64_t length;  ///< bytes
  bool appending;        ///< what lies beyond `length` is an append that was not committed
};

/// The main lane takes records; the other one those of a signal handler that interrupted the
/// storing of a record.
inline constexpr std::size_t lanes = 2;
inline constexpr std::size_t interrupt_lane_records = 64;

struct commit_point {
  std::uint64_t tail[lanes];  ///< records before it stand in the logs
  log_position logs[log_roles];
};

struct ring_block {
  block_header header;
  std::atomic<std::uint32_t> tid;  ///< whose records these are; names the logs
  std::uint32_t capacity;          ///< of the main lane, in records; a power of two
  alignas(64) std::atomic<std::uint64_t> published[lanes];  ///< records before it are complete
  alignas(64) std::atomic<std::uint32_t> commit_index;
  commit_point commits[2];  ///< commits[commit_index] is whole at any instant
  record interrupt_slots[interrupt_lane_records];
  // Followed by `capacity` records.

  record* slots() noexcept { return reinterpret_cast<record*>(this + 1); }
  record& slot(std::size_t lane, std::uint64_t position) noexcept {
    return lane == 0 ? slots()[position & (capacity - 1)]
                     : interrupt_slots[position % interrupt_lane_records];
  }
  const commit_point& committed() const noexcept {
    return commits[commit_index.load(std::memory_order_acquire)];
  }
  void commit(const commit_point& c) noexcept {
    const std::uint32_t next = 1 - commit_index.load(std::memory_order_relaxed);
    commits[next] = c;
    commit_index.store(next, std::memory_order_release);
  }
  static constexpr std::size_t bytes_for(std::size_t capacity) noexcept {
    return sizeof(ring_block) + capacity * sizeof(record);
  }
};

/// Names by id; entries follow, each a stored_name and its bytes, padded to a multiple of 8.
struct names_block {
  block_header header;
  std::atomic<std::uint64_t> used_bytes;  ///< of the entries

  char* entries() noexcept { return reinterpret_cast<char*>(this + 1); }
};

struct stored_name {
  std::uint32_t id;
  std::uint32_t bytes;  ///< of the text that follows: how a line begins, comma included
};

constexpr std::size_t padded_name_bytes(std::size_t text_bytes) noexcept {
  return (sizeof(stored_name) + text_bytes + 7) & ~std::size_t{7};
}

/// Blocks are mapped one by one, so they are whole pages of the machine that writes the file.
inline std::size_t to_file_blocks(std::size_t bytes) noexcept {
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page_bytes - 1) & ~(page_bytes - 1);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_LAYOUT_HPP

// The log files that a thread keeps open.
#ifndef LOTUS_OPEN_LOGS_HPP
#define LOTUS_OPEN_LOGS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Descriptors of a thread's two logs, by role; -1 where closed.
struct open_logs {
  int fds[log_roles] = {-1, -1};

  void close_all() noexcept {
    for (int& fd : fds) {
      if (fd >= 0) close(fd);
      fd = -1;
    }
  }
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_OPEN_LOGS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

struct backlog_chunk;

/// One living thread's way into its ring. Stays where it is until the thread is dead, whatever
/// becomes of the ring; then another thread takes it over. Never freed.
struct alignas(64) producer {
  // For the owning thread; the session changes them only where the owner cannot be storing.
  record* slots = nullptr;
  std::uint64_t mask = 0;
  std::atomic<std::uint64_t>* published = &none_published;
  std::atomic<std::uint32_t> storing{0};  ///< 1 while a record is stored, 2 in a handler meanwhile

  /// Positions below it are free. 0 sends every record the slow way. Written under `guard`.
  alignas(64) std::atomic<std::uint64_t> limit{0};
  std::atomic<std::uint64_t> interrupt_limit{0};
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<bool> drained_itself{false};  ///< since the drain thread last came by
  std::atomic<std::uint64_t> none_published{
      0};  ///< stands in for a ring's counter before there is one

  // For the session, under `guard`.
  alignas(64) mutex guard;
  std::atomic<std::uint32_t> tid{0};  ///< 0: free
  ring_block* ring = nullptr;
  bool ring_in_file = false;  ///< what the ring holds survives the process
  bool attached = false;      ///< the ring is the running session's; else left over from one before
  open_logs logs;  ///< kept open between drains, for as many threads as the session likes
  bool logs_kept_open = false;
  backlog_chunk* backlog_first = nullptr;
  backlog_chunk* backlog_last = nullptr;
  producer* next = nullptr;
};

LOTUS_DETAIL_PER_MODULE inline thread_local producer* this_producer = nullptr;

LOTUS_DETAIL_COLD inline std::uint64_t monotonic_ticks() noexcept {
  return static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
}

/// Clock ticks as the session counts them: of the hardware counter, or ns of CLOCK_MONOTONIC.
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t now_ticks() noexcept {
  const bool hardware = this_module.hardware_clock.load(std::memory_order_relaxed);
  return LOTUS_DETAIL_LIKELY(hardware) ? hardware_ticks() : monotonic_ticks();
}

LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void push_first(const record& r) noexcept {
  const services& s = join_session(true);
  this_producer = s.this_thread();
  if (this_producer != nullptr) s.push_slow(*this_producer, r);
}

LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void push_rarely(producer& p,
                                                                  const record& r) noexcept {
  const services& s = *this_module.hub.load(std::memory_order_acquire);
  if (p.storing.load(std::memory_order_relaxed) != 0) {
    s.push_nested(p, r);
  } else {
    s.push_slow(p, r);
  }
}

/// Appends one record to this thread's ring; when the ring is full it drains first, so nothing is
/// lost. The record is complete for every reader, also after a kill, once this returns.
/// Errors: none thrown. Thread and signal safety: all. Cost: bench/scope_bench.cpp.
LOTUS_DETAIL_ALWAYS_INLINE void push(std::uint64_t begin_ticks, std::uint64_t end_ticks,
                                     record_tag tag) noexcept {
  producer* const p = this_producer;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) return push_first({begin_ticks, end_ticks, tag});
  if (LOTUS_DETAIL_UNLIKELY(p->storing.load(std::memory_order_relaxed) != 0)) {
    return push_rarely(*p, {begin_ticks, end_ticks, tag});
  }
  // A handler that runs between these two stores sees `storing` and keeps to its own lane; one that
  // ran before has put everything back as it was.
  p->storing.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint64_t at = p->published->load(std::memory_order_relaxed);
  if (LOTUS_DETAIL_UNLIKELY(at >= p->limit.load(std::memory_order_acquire))) {
    p->storing.store(0, std::memory_order_relaxed);
    return push_rarely(*p, {begin_ticks, end_ticks, tag});
  }
  p->slots[at & p->mask] = {begin_ticks, end_ticks, tag};
  p->published->store(at + 1, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  p->storing.store(0, std::memory_order_relaxed);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_THREAD_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The tag under which an operation is recorded; empty where there was no memory for the name.
LOTUS_DETAIL_PER_MODULE inline record_tag operation_tag(std::string_view name) noexcept {
  const services* s = this_module.hub.load(std::memory_order_acquire);
  if (s == nullptr) s = &join_session(true);
  const std::uint32_t id = s->intern(name);
  return id == 0 ? record_tag{} : record_tag{event_kind::operation, id};
}

/// A place in the source with a fixed name, and the name's tag once it is known.
class call_site {
 public:
  explicit constexpr call_site(std::string_view name) noexcept : name_{name} {}

  record_tag tag() noexcept {
    const record_tag known = tag_.load(std::memory_order_relaxed);
    return LOTUS_DETAIL_LIKELY(!known.empty()) ? known : first_tag();
  }

 private:
  LOTUS_DETAIL_COLD record_tag first_tag() noexcept {
    const record_tag tag = operation_tag(name_);
    tag_.store(tag, std::memory_order_relaxed);
    return tag;
  }

  std::string_view name_;
  std::atomic<record_tag> tag_{record_tag{}};
};

/// The call site of the type `Here`, which has a static constexpr name(). A member of a hidden
/// template, since a static in an inline function would keep a plugin from unloading.
template <class Here>
struct LOTUS_DETAIL_PER_MODULE call_site_of {
  static call_site site;
};
template <class Here>
call_site call_site_of<Here>::site{Here::name()};

/// What all scopes share: measures from construction to destruction. Neither copied nor moved, and
/// only ever on the stack, for its end is the end of a block.
class span {
 public:
  span(const span&) = delete;
  span& operator=(const span&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 protected:
  /// @param make_tag  called where the span is measured; an empty tag: nothing is recorded.
  template <class MakeTag>
  LOTUS_DETAIL_ALWAYS_INLINE explicit span(MakeTag make_tag) noexcept {
    const recording mode = recording_mode();
    if (mode == recording::off) return;
    tag_ = LOTUS_DETAIL_LIKELY(mode == recording::on) ? make_tag() : rare_tag(make_tag);
    if (!tag_.empty()) begin_ticks_ = now_ticks();
  }

  LOTUS_DETAIL_ALWAYS_INLINE ~span() {
    if (tag_.empty()) return;
    const std::uint64_t end_ticks = now_ticks();
    const recording mode = recording_mode();
    if (LOTUS_DETAIL_LIKELY(mode == recording::on)) {
      push(begin_ticks_, end_ticks, tag_);
    } else if (mode == recording::annotated) {
      end_annotated(begin_ticks_, end_ticks, tag_);
    }
  }

 private:
  template <class MakeTag>
  LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD static record_tag rare_tag(MakeTag make_tag) noexcept {
    if (!is_recording()) return {};
    const record_tag tag = make_tag();
    if (recording_mode() == recording::annotated) begin_annotation(tag);
    return tag;
  }

  LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD static void end_annotated(std::uint64_t begin_ticks,
                                                                      std::uint64_t end_ticks,
                                                                      record_tag tag) noexcept {
    push(begin_ticks, end_ticks, tag);
    end_annotation(tag);
  }

  record_tag tag_;
  std::uint64_t begin_ticks_ = 0;
};

}  // namespace detail

/// Logs one operation, "S<name>", from here to the end of the block; see LOTUS_SCOPE.
/// Errors: none thrown. Thread safety: any thread; the scope itself belongs to one.
class scope : detail::span {
 public:
  /// @param name  interned by content: needs to live only for this call. Costs a hash and a
  /// look-up.
  LOTUS_DETAIL_ALWAYS_INLINE explicit scope(std::string_view name) noexcept
      : span{[name] { return detail::operation_tag(name); }} {}
  /// With a name known when compiled: its id is looked up once.
  LOTUS_DETAIL_ALWAYS_INLINE explicit scope(detail::call_site& site) noexcept
      : span{[&site] { return site.tag(); }} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~scope() = default;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SCOPE_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

template <event_kind Kind>
class batch_span : span {
 public:
  /// @param batch  number of the batch in its epoch; below 2^56.
  LOTUS_DETAIL_ALWAYS_INLINE explicit batch_span(std::uint64_t batch) noexcept
      : span{[batch] {
          return record_tag{Kind, batch};
        }} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~batch_span() = default;
};

template <event_kind Kind>
LOTUS_DETAIL_ALWAYS_INLINE void batch_event(std::uint64_t batch) noexcept {
  if (!is_recording()) return;
  const std::uint64_t now = now_ticks();
  push(now, now, {Kind, batch});
}

}  // namespace detail

/// Scope in a worker around all that makes batch `i`: "SBatchPreprocessed_i".
using batch_preprocessed = detail::batch_span<detail::event_kind::batch_preprocessed>;

/// Scope in the consumer around its wait for batch `i`: "SBatchWait_i".
using batch_wait = detail::batch_span<detail::event_kind::batch_wait>;

/// In the consumer, when batch `i` came while another one was waited for, and is put aside:
/// "SBatchWait_i" with the 1000-ns marker.
LOTUS_DETAIL_ALWAYS_INLINE void batch_arrived(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_arrived>(batch);
}

/// In the consumer, when batch `i` is handed over: "SBatchConsumed_i".
LOTUS_DETAIL_ALWAYS_INLINE void batch_consumed(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_consumed>(batch);
}

/// In the consumer, when the work for batch `i` is given to a worker: "SBatchQueued_i".
LOTUS_DETAIL_ALWAYS_INLINE void batch_queued(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_queued>(batch);
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BATCH_HPP

// Resume, pause and detach of a profiler, chosen at run time.
#ifndef LOTUS_COLLECTOR_HPP
#define LOTUS_COLLECTOR_HPP

#include <new>

// What a collector is to the rest of the library: a table of functions.
#ifndef LOTUS_COLLECTORS_BACKEND_HPP
#define LOTUS_COLLECTORS_BACKEND_HPP

#include <stdarg.h>

#include <cstdio>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Says one line on stderr, printf-like.
__attribute__((format(printf, 1, 2))) inline void collector_say(const char* format, ...) noexcept {
  char line[1024] = "lotus: ";
  constexpr std::size_t head = 7;
  va_list values;
  va_start(values, format);
  const int n = std::vsnprintf(line + head, sizeof(line) - head - 1, format, values);
  va_end(values);
  if (n < 0) return;
  const std::size_t length = std::strlen(line);
  line[length] = '\n';
  if (write(STDERR_FILENO, line, length + 1) < 0) return;  // nobody is left to be told
}

/// How long a collector may take to answer: LOTUS_COLLECTOR_TIMEOUT_MS, else 2000.
inline std::int64_t collector_timeout_ms() noexcept {
  const char* text = secure_getenv("LOTUS_COLLECTOR_TIMEOUT_MS");
  const long given = text != nullptr ? std::strtol(text, nullptr, 10) : 0;
  return given > 0 && given < 3'600'000 ? given : 2000;
}

/// One kind of collector. All calls come one at a time, never nested, never after detach().
struct collector_backend {
  const char* name;
  /// resume() and pause() return only when collection is on or off; without it the caller must
  /// sleep, or late samples of the code before fall into the region.
  bool acknowledges;
  /// Gets ready, paused. False, after saying why, when it cannot be used.
  bool (*begin)() noexcept;
  /// False when the collector does not answer any more.
  bool (*resume)() noexcept;
  bool (*pause)() noexcept;
  /// For good. May be called at any time after begin().
  void (*detach)() noexcept;
  /// CPU time between two samples, in ns; 0 where there are no samples.
  std::uint64_t (*interval_ns)() noexcept;
  /// A collected region has ended (times of CLOCK_MONOTONIC in ns). May be null.
  void (*region)(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_BACKEND_HPP

// The collector that needs nothing but the kernel.
#ifndef LOTUS_COLLECTORS_BUILTIN_HPP
#define LOTUS_COLLECTORS_BUILTIN_HPP

#include <cstdlib>

// perf record and perf stat, through their control channel with acknowledgement.
#ifndef LOTUS_COLLECTORS_PERF_HPP
#define LOTUS_COLLECTORS_PERF_HPP

#include <poll.h>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Holds the text that perf was given as --control: "fifo:CTL,ACK" or "fd:CTL,ACK".
inline constexpr char perf_control_variable[] = "LOTUS_PERF_CONTROL";

/// The two ends of perf's control channel (perf-record(1), --control).
class perf_control {
 public:
  static perf_control& instance() noexcept {
    static perf_control control;
    return control;
  }

  bool open_from_environment() noexcept {
    const char* text = secure_getenv(perf_control_variable);
    const std::string_view given = text != nullptr ? text : "";
    const std::size_t colon = given.find(':');
    const std::size_t comma = given.find(',');
    if (colon == std::string_view::npos || comma == std::string_view::npos || comma < colon) {
      collector_say("the perf collector needs %s=fifo:CTL,ACK, as given to perf --control",
                    perf_control_variable);
      return false;
    }
    const bool fifo = given.substr(0, colon) == "fifo";
    control_ = open_end(fifo, given.substr(colon + 1, comma - colon - 1));
    answers_ = open_end(fifo, given.substr(comma + 1));
    if (control_ < 0 || answers_ < 0) {
      collector_say("cannot open perf's control channel %s: %s", text, std::strerror(errno));
      close_both();
      return false;
    }
    return true;
  }

  /// Sends a command and waits for the answer; false when none comes in time.
  bool send(std::string_view command) noexcept {
    if (control_ < 0) return false;
    if (write(control_, command.data(), command.size()) != static_cast<ssize_t>(command.size())) {
      return false;
    }
    // An answer is "ack\n" and a zero; what counts is the newline.
    const std::int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + collector_timeout_ms() * 1'000'000;
    for (;;) {
      const std::int64_t left_ns = until_ns - clock_ns(CLOCK_MONOTONIC);
      if (left_ns <= 0) return false;
      pollfd p{answers_, POLLIN, 0};
      if (poll(&p, 1, static_cast<int>(left_ns / 1'000'000) + 1) <= 0) continue;
      char text[16];
      const ssize_t got = read(answers_, text, sizeof(text));
      if (got > 0 && std::memchr(text, '\n', static_cast<std::size_t>(got)) != nullptr) return true;
    }
  }

  void close_both() noexcept {
    if (control_ >= 0) close(control_);
    if (answers_ >= 0) close(answers_);
    control_ = answers_ = -1;
  }

 private:
  /// Read and write, so that opening a FIFO never waits and writing never raises SIGPIPE; a pipe
  /// that is given as a descriptor is opened anew for that.
  static int open_end(bool fifo, std::string_view text) noexcept {
    char path[4096];
    const int length = std::snprintf(path, sizeof(path), "%s%.*s", fifo ? "" : "/proc/self/fd/",
                                     static_cast<int>(text.size()), text.data());
    if (text.empty() || length >= static_cast<int>(sizeof(path))) {
      errno = EINVAL;
      return -1;
    }
    return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  }

  int control_ = -1;
  int answers_ = -1;
};

/// The interval that lotus-tool asked its collector for, from LOTUS_MAP_RATE (Hz); 1 ms without.
inline std::uint64_t asked_interval_ns() noexcept {
  const char* text = secure_getenv("LOTUS_MAP_RATE");
  const double rate_hz = text != nullptr ? std::strtod(text, nullptr) : 0;
  return rate_hz >= 1 && rate_hz <= 1e6 ? static_cast<std::uint64_t>(1e9 / rate_hz) : 1'000'000;
}

inline const collector_backend* perf_backend() noexcept {
  static constexpr collector_backend table{
      "perf",
      true,
      []() noexcept { return perf_control::instance().open_from_environment(); },
      []() noexcept { return perf_control::instance().send("enable\n"); },
      []() noexcept { return perf_control::instance().send("disable\n"); },
      []() noexcept {
        perf_control::instance().send("disable\n");
        perf_control::instance().close_both();
      },
      []() noexcept { return asked_interval_ns(); },
      nullptr,
  };
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_PERF_HPP

// The built-in sampler: perf_event_open(2) on this process's threads, its samples in a file beside
// the logs.
#ifndef LOTUS_COLLECTORS_SAMPLER_HPP
#define LOTUS_COLLECTORS_SAMPLER_HPP

#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

// A perf_event_open(2) sampling event, and the ring through which the kernel hands its records out.
#ifndef LOTUS_COLLECTORS_PERF_RING_HPP
#define LOTUS_COLLECTORS_PERF_RING_HPP

#include <linux/perf_event.h>
#include <sys/syscall.h>

// What stands in a file of samples: written by the built-in collector and by lotus-tool.
//
// A file is a header, then records, each as long as its perf_event_header says: those of the
// kernel as they came (perf_event_open(2): PERF_RECORD_SAMPLE, _MMAP2, _FORK, _LOST), and ours.
// Times are nanoseconds of CLOCK_MONOTONIC.
#ifndef LOTUS_COLLECTORS_SAMPLE_LAYOUT_HPP
#define LOTUS_COLLECTORS_SAMPLE_LAYOUT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr char samples_file_magic[8] = {'L', 'O', 'T', 'U', 'S', 'S', 'M', 'P'};
inline constexpr std::uint32_t samples_file_layout = 1;
/// Such files lie beside the logs. The rest of the name is a process id and a time.
inline constexpr char samples_file_start[] = ".lotus_samples_";

struct samples_file_header {
  char magic[8];
  std::uint32_t layout;
  std::uint32_t header_bytes;  ///< where the first record begins
  std::uint32_t pid;
  std::uint32_t unused;
  std::uint64_t interval_ns;  ///< CPU time between two samples of a thread
};

/// What the kernel puts into a sample for sample_type, in its order.
inline constexpr std::uint64_t samples_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
struct sample_record {
  perf_event_header header;
  std::uint64_t address;
  std::uint32_t pid;
  std::uint32_t tid;
  std::uint64_t time_ns;
};

/// Types of our own records; far above the kernel's.
enum class own_record : std::uint32_t {
  clock = 0x4c4f0001,
  module = 0x4c4f0002,
  region = 0x4c4f0003,
  own_thread = 0x4c4f0004,
};

/// One moment on two clocks; logs are in nanoseconds of CLOCK_REALTIME.
struct clock_record {
  perf_event_header header;
  std::int64_t monotonic_ns;
  std::int64_t realtime_ns;
};

/// Code that is mapped from a file; its path follows, ended and padded by zeros.
struct module_record {
  perf_event_header header;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t file_offset;  ///< of `begin`, in bytes
  std::uint64_t time_ns;      ///< when it was seen
  std::uint32_t pid;
  std::uint32_t unused;
};

/// One collected pass of a LOTUS_MAP_REGION; its name follows, ended and padded by zeros.
struct region_record {
  perf_event_header header;
  std::uint64_t begin_ns;
  std::uint64_t end_ns;
  std::uint32_t pid;
  std::uint32_t tid;
};

/// A thread of the library: its samples are none of the program's.
struct own_thread_record {
  perf_event_header header;
  std::uint32_t pid;
  std::uint32_t tid;
};

static_assert(sizeof(samples_file_header) == 32 && sizeof(sample_record) == 32 &&
                  sizeof(clock_record) == 24 && sizeof(module_record) == 48 &&
                  sizeof(region_record) == 32 && sizeof(own_thread_record) == 16,
              "files are read by other builds");

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_SAMPLE_LAYOUT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// A sample each `interval_ns` of CPU time of a thread and of what it starts later, in user code;
/// what code they map meanwhile, and what they start.
/// By the clock and not by a hardware counter: it works in virtual machines too, and a sample then
/// stands for the same time everywhere.
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

/// Returns a descriptor or -errno. @param cpu  -1: any, for an event that is not inherited.
inline int open_event(const perf_event_attr& attr, pid_t thread, int cpu) noexcept {
  const long fd = syscall(SYS_perf_event_open, &attr, thread, cpu, -1,
                          static_cast<unsigned long>(PERF_FLAG_FD_CLOEXEC));
  return fd < 0 ? -errno : static_cast<int>(fd);
}

/// An event's ring, mapped. Neither copied nor destroyed: whoever holds it says when it ends.
/// Thread safety: none. A forked child does not have the mapping.
class perf_ring {
 public:
  /// Maps the ring of event `fd`, of `pages` pages (a power of two) or as many as the kernel lets
  /// an unprivileged user have (perf_event_mlock_kb). Returns 0 or errno.
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

  /// Hands all records that came since the last call to `sink(const char*, std::size_t)`, in one
  /// or two pieces; together they are whole records.
  template <class Sink>
  void drain(Sink&& sink) noexcept {
    if (control_ == nullptr) return;
    const std::uint64_t head = __atomic_load_n(&control_->data_head, __ATOMIC_ACQUIRE);
    std::uint64_t at = control_->data_tail;
    while (at != head) {
      const std::size_t offset = at % bytes_;
      const auto rest = static_cast<std::size_t>(head - at);
      const std::size_t piece = rest < bytes_ - offset ? rest : bytes_ - offset;
      sink(data_ + offset, piece);
      at += piece;
    }
    __atomic_store_n(&control_->data_tail, head, __ATOMIC_RELEASE);
  }

 private:
  perf_event_mmap_page* control_ = nullptr;
  const char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_PERF_RING_HPP

// Writes a file of samples beside the logs.
#ifndef LOTUS_COLLECTORS_SAMPLE_FILE_HPP
#define LOTUS_COLLECTORS_SAMPLE_FILE_HPP

// The shared file mapping that keeps rings, names and clock readable after the process died.
#ifndef LOTUS_RING_FILE_HPP
#define LOTUS_RING_FILE_HPP

#include <sys/file.h>
#include <sys/stat.h>

// Names of operations: how they are written into a line, and the table that makes them small ids.
#ifndef LOTUS_NAMES_HPP
#define LOTUS_NAMES_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr std::size_t max_name_bytes = 1024;  ///< longer names are cut
inline constexpr std::size_t max_line_name_bytes = 1 + 3 * max_name_bytes;

/// Writes "S" and the name as it stands in a line to `out` (max_line_name_bytes); returns the
/// length. %XX replaces control bytes, bytes from 0x7f on, comma, quote, percent, a blank at either
/// end, and the B of a name that begins with "Batch": no name can end a field or a line, or pass
/// for a batch record. Undone by lotus-tool.
inline std::size_t write_line_name(std::string_view name, char* out) noexcept {
  constexpr char hex[] = "0123456789ABCDEF";
  const std::size_t length = name.size() < max_name_bytes ? name.size() : max_name_bytes;
  const bool like_batch = name.substr(0, 5) == "Batch";
  char* p = out;
  *p++ = 'S';
  for (std::size_t i = 0; i < length; ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool edge_blank = c == ' ' && (i == 0 || i + 1 == length);
    if (c < 0x20 || c >= 0x7f || c == ',' || c == '"' || c == '%' || edge_blank ||
        (i == 0 && like_batch)) {
      *p++ = '%';
      *p++ = hex[c >> 4];
      *p++ = hex[c & 15];
    } else {
      *p++ = static_cast<char>(c);
    }
  }
  return static_cast<std::size_t>(p - out);
}

/// A name once seen. Lives as long as the process.
struct name_entry {
  std::uint64_t hash;
  std::uint32_t id;
  std::uint16_t raw_bytes;
  std::uint16_t line_bytes;
  // Followed by the raw name, then by the name as a line begins with it, comma included.

  std::string_view raw() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), raw_bytes};
  }
  std::string_view line_start() const noexcept {
    return {reinterpret_cast<const char*>(this + 1) + raw_bytes, line_bytes};
  }
};

/// Interns names by content. Reading takes no lock; nothing is ever freed, so ids and entries stay
/// valid until the process ends. Ids count from 1; 0 says that there was no memory.
/// Thread safety: all; also from signal handlers.
class name_table {
 public:
  std::uint32_t intern(std::string_view name) noexcept {
    name = name.substr(0, max_name_bytes);
    const std::uint64_t hash = hash_of(name);
    if (const name_entry* found = find(name, hash)) return found->id;
    const signals_blocked quiet;
    const locked hold{mutex_};
    if (const name_entry* found = find(name, hash)) return found->id;
    return add(name, hash);
  }

  /// @param id  what intern() returned, not 0.
  const name_entry& entry(std::uint32_t id) const noexcept {
    const name_page* page = pages_[(id - 1) / page_names].load(std::memory_order_acquire);
    return *page->entries[(id - 1) % page_names].load(std::memory_order_acquire);
  }

  std::uint32_t size() const noexcept { return count_.load(); }

  mutex& fork_lock() noexcept { return mutex_; }

 private:
  static constexpr std::size_t page_names = 4096;
  static constexpr std::size_t max_pages = 4096;
  static constexpr std::size_t arena_bytes = std::size_t{1} << 18;

  struct name_page {
    std::atomic<const name_entry*> entries[page_names];
  };
  struct index {
    std::size_t slots;  ///< a power of two; the slots follow
    std::atomic<const name_entry*>* data() noexcept {
      return reinterpret_cast<std::atomic<const name_entry*>*>(this + 1);
    }
  };

  /// FNV-1a (Fowler, Noll, Vo), 64 bits: names are short.
  static std::uint64_t hash_of(std::string_view name) noexcept {
    std::uint64_t h = 14695981039346656037U;
    for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return h;
  }

  const name_entry* find(std::string_view name, std::uint64_t hash) const noexcept {
    index* in = index_.load(std::memory_order_acquire);
    if (in == nullptr) return nullptr;
    for (std::uint64_t i = hash;; ++i) {
      const name_entry* e = in->data()[i & (in->slots - 1)].load(std::memory_order_acquire);
      if (e == nullptr || (e->hash == hash && e->raw() == name)) return e;
    }
  }

  static void place(index& in, const name_entry& e) noexcept {
    std::uint64_t i = e.hash;
    while (in.data()[i & (in.slots - 1)].load(std::memory_order_relaxed) != nullptr) ++i;
    in.data()[i & (in.slots - 1)].store(&e, std::memory_order_release);
  }

  /// The index, at most half full after one more name; the outgrown one is left to its readers.
  index* roomy_index() noexcept {
    index* in = index_.load(std::memory_order_relaxed);
    const std::size_t needed = (std::size_t{size()} + 1) * 2;
    if (in != nullptr && needed <= in->slots) return in;
    const std::size_t slots = in == nullptr ? 1024 : in->slots * 2;
    void* memory = map_memory(sizeof(index) + slots * sizeof(std::atomic<const name_entry*>));
    if (memory == nullptr) return nullptr;
    auto* grown = new (memory) index{slots};
    for (std::uint32_t id = 1; id <= size(); ++id) place(*grown, entry(id));
    index_.store(grown, std::memory_order_release);
    return grown;
  }

  void* allocate(std::size_t bytes) noexcept {
    bytes = (bytes + 7) & ~std::size_t{7};
    if (arena_left_ < bytes) {
      void* fresh = map_memory(arena_bytes);
      if (fresh == nullptr) return nullptr;
      arena_ = static_cast<char*>(fresh);
      arena_left_ = arena_bytes;
    }
    void* p = arena_;
    arena_ += bytes;
    arena_left_ -= bytes;
    return p;
  }

  std::uint32_t add(std::string_view name, std::uint64_t hash) noexcept {
    const std::uint32_t id = size() + 1;
    if (id > page_names * max_pages) return 0;
    auto& page_slot = pages_[(id - 1) / page_names];
    name_page* page = page_slot.load(std::memory_order_relaxed);
    if (page == nullptr) {
      page = static_cast<name_page*>(map_memory(sizeof(name_page)));
      if (page == nullptr) return 0;
      page_slot.store(page, std::memory_order_release);
    }
    index* in = roomy_index();
    char line[max_line_name_bytes + 1];
    std::size_t line_bytes = write_line_name(name, line);
    line[line_bytes++] = ',';
    void* memory = allocate(sizeof(name_entry) + name.size() + line_bytes);
    if (in == nullptr || memory == nullptr) return 0;
    auto* e = new (memory) name_entry{hash, id, static_cast<std::uint16_t>(name.size()),
                                      static_cast<std::uint16_t>(line_bytes)};
    auto* text = reinterpret_cast<char*>(e + 1);
    if (!name.empty()) std::memcpy(text, name.data(), name.size());
    std::memcpy(text + name.size(), line, line_bytes);
    page->entries[(id - 1) % page_names].store(e, std::memory_order_release);
    count_.store(id);
    place(*in, *e);
    return id;
  }

  mutex mutex_;
  std::atomic<std::uint32_t> count_{0};
  std::atomic<index*> index_{nullptr};
  std::atomic<name_page*> pages_[max_pages]{};
  char* arena_ = nullptr;
  std::size_t arena_left_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_NAMES_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Ring files begin with this; while they are being made, with the other one.
inline constexpr char ring_file_start[] = ".lotus_ring_";
inline constexpr char unfinished_ring_file_start[] = ".lotus_new_";

/// This process's ring file. The lock on it (flock) tells others that the process lives; the kernel
/// drops it when the process ends or execs. Where no file can be had, blocks are private memory.
/// Thread safety: none; the session locks. Trivially destructible.
class ring_file {
 public:
  /// Makes the file in `directory` (borrowed, must stay open). Returns 0 or errno.
  int create(int directory, const char* prefix, bool ticks_are_ns,
             const clock_map& clock) noexcept {
    directory_ = directory;
    char unfinished[96];
    const auto pid = static_cast<unsigned>(getpid());
    const auto now_ns = static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME));
    std::snprintf(name_, sizeof(name_), "%s%u_%llx", ring_file_start, pid, now_ns);
    std::snprintf(unfinished, sizeof(unfinished), "%s%u_%llx", unfinished_ring_file_start, pid,
                  now_ns);
    fd_ = openat(directory, unfinished, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) return errno;
    int error = 0;
    if (flock(fd_, LOCK_EX) != 0) error = errno;
    bytes_ = 0;
    void* header = error == 0 ? map_more(to_file_blocks(sizeof(ring_file_header)), error) : nullptr;
    if (header != nullptr) {
      header_ = static_cast<ring_file_header*>(header);
      fill_header(prefix, ticks_are_ns);
      store_clock(clock);
      // Only now does the name say that this can be recovered.
      if (renameat(directory, unfinished, directory, name_) != 0) error = errno;
    }
    if (error != 0) {
      unlinkat(directory, unfinished, 0);
      forget();
    }
    return error;
  }

  bool exists() const noexcept { return header_ != nullptr; }

  /// A new ring block for `tid`; from private memory where the file cannot grow.
  /// @param error  set to 0 where the block survives the process, else to why not. Returns null
  /// without memory.
  ring_block* add_ring(std::uint32_t tid, std::uint32_t capacity, int& error) noexcept {
    const std::size_t bytes = to_file_blocks(ring_block::bytes_for(capacity));
    error = ENOENT;
    void* memory = exists() ? map_more(bytes, error) : nullptr;
    if (memory == nullptr) memory = map_memory(bytes);
    if (memory == nullptr) return nullptr;
    auto* ring = static_cast<ring_block*>(memory);
    ring->tid.store(tid, std::memory_order_relaxed);
    ring->capacity = capacity;
    ring->header.bytes = bytes;
    ring->header.kind.store(block_kind::ring, std::memory_order_release);
    return ring;
  }

  /// Gives a ring's memory back. Its place in the file stays, as a ring with nothing in it.
  static void unmap(ring_block* ring) noexcept { munmap(ring, ring->header.bytes); }

  /// Puts private memory in a ring's place.
  static void replace(ring_block* ring) noexcept {
    static_cast<void>(mmap(ring, ring->header.bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  }

  /// Stores the names that are new since the last call. False when the file cannot grow.
  bool store_names(const name_table& names) noexcept {
    if (!exists()) return false;
    while (names_stored_ < names.size()) {
      const std::string_view text = names.entry(names_stored_ + 1).line_start();
      const std::size_t bytes = padded_name_bytes(text.size());
      if (names_left_ < bytes && !add_names_block()) return false;
      const std::uint64_t used = names_->used_bytes.load(std::memory_order_relaxed);
      const stored_name head{names_stored_ + 1, static_cast<std::uint32_t>(text.size())};
      std::memcpy(names_->entries() + used, &head, sizeof(head));
      std::memcpy(names_->entries() + used + sizeof(head), text.data(), text.size());
      names_->used_bytes.store(used + bytes, std::memory_order_release);
      names_left_ -= bytes;
      ++names_stored_;
    }
    return true;
  }
  std::uint32_t names_stored() const noexcept { return names_stored_; }

  void store_clock(const clock_map& clock) noexcept {
    if (!exists()) return;
    const std::uint32_t next = 1 - header_->clock_index.load(std::memory_order_relaxed);
    header_->clocks[next] = clock;
    header_->clock_index.store(next, std::memory_order_release);
  }

  /// Closes the file; ring blocks stay mapped, as their threads may be writing to them.
  /// @param keep  leave it on disk, because it holds what is not in the logs.
  void finish(bool keep) noexcept {
    if (!exists()) return;
    if (!keep) unlinkat(directory_, name_, 0);
    forget();
  }

  /// In a forked child: lets go of the parent's file and lock.
  void forget() noexcept {
    if (fd_ >= 0) close(fd_);
    if (header_ != nullptr) munmap(header_, header_->header_bytes);
    if (names_ != nullptr) munmap(names_, names_->header.bytes);
    *this = ring_file{};
  }

 private:
  static constexpr std::size_t names_block_bytes = std::size_t{64} << 10;

  /// Lengthens the file and maps the new part, every page there: a page that the disk has no room
  /// for must fail here and not as SIGBUS in somebody's scope.
  void* map_more(std::size_t bytes, int& error) noexcept {
    error = posix_fallocate(fd_, static_cast<off_t>(bytes_), static_cast<off_t>(bytes));
    if (error != 0) return nullptr;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_,
                        static_cast<off_t>(bytes_));
    if (memory == MAP_FAILED) {
      error = errno;
      return nullptr;
    }
    bytes_ += bytes;
    return memory;
  }

  void fill_header(const char* prefix, bool ticks_are_ns) noexcept {
    ring_file_header& h = *header_;
    h.layout = ring_file_layout;
    h.header_bytes = static_cast<std::uint32_t>(bytes_);
    h.pid = static_cast<std::uint32_t>(getpid());
    h.clock_ticks_are_ns = ticks_are_ns ? 1 : 0;
    std::snprintf(h.version, sizeof(h.version), "%s", LOTUS_DETAIL_VERSION_STRING);
    std::snprintf(h.prefix, sizeof(h.prefix), "%s", prefix);
    std::memcpy(h.magic, ring_file_magic, sizeof(h.magic));
  }

  bool add_names_block() noexcept {
    int error = 0;
    void* memory = map_more(names_block_bytes, error);
    if (memory == nullptr) return false;
    if (names_ != nullptr) munmap(names_, names_->header.bytes);
    names_ = static_cast<names_block*>(memory);
    names_->header.bytes = names_block_bytes;
    names_->header.kind.store(block_kind::names, std::memory_order_release);
    names_left_ = names_block_bytes - sizeof(names_block);
    return true;
  }

  int directory_ = -1;
  int fd_ = -1;
  char name_[64] = {};
  ring_file_header* header_ = nullptr;
  std::size_t bytes_ = 0;
  names_block* names_ = nullptr;
  std::size_t names_left_ = 0;
  std::uint32_t names_stored_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RING_FILE_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Calls `each(line)` for every line of /proc/self/maps, until it returns true. Allocates nothing.
template <class Each>
void for_each_mapping(Each&& each) noexcept {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char text[8192];
  std::size_t held = 0;
  ssize_t got = 0;
  bool found = false;
  while (!found && (got = read(fd, text + held, sizeof(text) - held)) > 0) {
    held += static_cast<std::size_t>(got);
    std::size_t at = 0;
    while (const void* end = std::memchr(text + at, '\n', held - at)) {
      const auto length = static_cast<std::size_t>(static_cast<const char*>(end) - (text + at));
      if ((found = each(std::string_view{text + at, length}))) break;
      at += length + 1;
    }
    held = held == sizeof(text) && at == 0 ? 0 : held - at;  // a line that is absurdly long
    std::memmove(text, text + at, held);
  }
  close(fd);
}

/// The path at the end of a line of /proc/self/maps, from its first '/'; empty when there is none.
inline std::string_view mapped_path(std::string_view line) noexcept {
  const std::size_t slash = line.find('/');
  return slash == std::string_view::npos ? std::string_view{} : line.substr(slash);
}

/// A file of samples, made when there is something to write. Where it cannot be written, that is
/// said once. Thread safety: none; the sampler locks. Trivially destructible.
class sample_file {
 public:
  /// Makes the file where lotus-tool asks for it (LOTUS_MAP_FOLDER), else in the directory of the
  /// session's logs, or in the current one without a session. At later calls, nothing.
  void begin(std::uint64_t interval_ns) noexcept {
    if (tried_) return;
    tried_ = true;
    if (*directory_ == '\0') find_directory();
    char path[sizeof(directory_) + 64];
    std::snprintf(path, sizeof(path), "%s%s%u_%llx", directory_, samples_file_start,
                  static_cast<unsigned>(getpid()),
                  static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME)));
    fd_ = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) {
      collector_say("cannot write samples to %s: %s", path, std::strerror(errno));
      return;
    }
    samples_file_header h{};
    std::memcpy(h.magic, samples_file_magic, sizeof(h.magic));
    h.layout = samples_file_layout;
    h.header_bytes = sizeof(h);
    h.pid = static_cast<std::uint32_t>(getpid());
    h.interval_ns = interval_ns;
    append(&h, sizeof(h));
    clock();
  }

  void append(const void* data, std::size_t bytes) noexcept {
    const char* from = static_cast<const char*>(data);
    while (fd_ >= 0 && bytes > 0) {
      const ssize_t n = write(fd_, from, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        collector_say("cannot write samples: %s; the rest is lost", std::strerror(errno));
        return forget();
      }
      from += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }

  void region(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
    region_record r{};
    r.begin_ns = begin_ns;
    r.end_ns = end_ns;
    r.pid = static_cast<std::uint32_t>(getpid());
    r.tid = static_cast<std::uint32_t>(gettid());
    append_with_text(own_record::region, r, name);
  }

  /// Notes all code that is mapped from files now.
  void modules() noexcept {
    if (fd_ < 0) return;
    for_each_mapping([&](std::string_view line) {
      // "5566-7788 r-xp 00001000 08:01 1234   /path"
      module_record m{};
      unsigned long long begin = 0, end = 0, offset = 0;
      char mode[8] = {};
      char head[64] = {};
      std::memcpy(head, line.data(), line.size() < sizeof(head) ? line.size() : sizeof(head) - 1);
      // NOLINTNEXTLINE(cert-err34-c): the kernel's own text
      if (std::sscanf(head, "%llx-%llx %7s %llx", &begin, &end, mode, &offset) != 4) return false;
      std::string_view path = mapped_path(line);
      if (path.empty()) path = line.substr(line.find('[') < line.size() ? line.find('[') : 0);
      if (mode[2] != 'x' || (path[0] != '/' && path != "[vdso]")) return false;
      m.begin = begin;
      m.end = end;
      m.file_offset = offset;
      m.time_ns = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
      m.pid = static_cast<std::uint32_t>(getpid());
      append_with_text(own_record::module, m, path);
      return false;
    });
  }

  void own_thread(std::uint32_t tid) noexcept {
    own_thread_record r{};
    r.header = {static_cast<std::uint32_t>(own_record::own_thread), 0, sizeof(r)};
    r.pid = static_cast<std::uint32_t>(getpid());
    r.tid = tid;
    append(&r, sizeof(r));
  }

  void clock() noexcept {
    clock_record c{};
    c.header = {static_cast<std::uint32_t>(own_record::clock), 0, sizeof(c)};
    c.monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    c.realtime_ns = clock_ns(CLOCK_REALTIME);
    append(&c, sizeof(c));
  }

  /// Closes the file, the clock read once more.
  void finish() noexcept {
    if (fd_ >= 0) clock();
    forget();
  }

  /// In a forked child: the file is the parent's, but its place is also that of the child's, which
  /// may have no logs yet.
  void forget_parent() noexcept {
    forget();
    tried_ = false;
  }

  /// Closes the file.
  void forget() noexcept {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  template <class Record>
  void append_with_text(own_record type, Record& r, std::string_view text) noexcept {
    if (fd_ < 0) return;
    char bytes[sizeof(Record) + 4096 + 8] = {};
    text = text.substr(0, 4096);
    const std::size_t size = (sizeof(Record) + text.size() + 8) & ~std::size_t{7};
    r.header = {static_cast<std::uint32_t>(type), 0, static_cast<std::uint16_t>(size)};
    std::memcpy(bytes, &r, sizeof(r));
    std::memcpy(bytes + sizeof(r), text.data(), text.size());
    append(bytes, size);
  }

  /// The folder that lotus-tool asks for, its '/' included; 0 where it asks for none.
  static std::size_t asked_directory(char* path, std::size_t room) noexcept {
    const char* folder = secure_getenv("LOTUS_MAP_FOLDER");
    if (folder == nullptr || *folder == '\0') return 0;
    const auto length = static_cast<std::size_t>(std::snprintf(path, room, "%s/", folder));
    return length < room ? length : 0;
  }

  /// The folder of the logs, its '/' included: that of the ring file, which is mapped while a
  /// session records. Returns its length.
  static std::size_t log_directory(char* path, std::size_t room) noexcept {
    std::size_t length = 0;
    char wanted[64];
    std::snprintf(wanted, sizeof(wanted), "/%s%u_", ring_file_start,
                  static_cast<unsigned>(getpid()));
    for_each_mapping([&](std::string_view line) {
      const std::string_view mapped = mapped_path(line);
      const std::size_t at = mapped.find(wanted);
      if (at == std::string_view::npos || at + 1 >= room) return false;
      std::memcpy(path, mapped.data(), at + 1);
      length = at + 1;
      return true;
    });
    return length;
  }

  void find_directory() noexcept {
    std::size_t length = asked_directory(directory_, sizeof(directory_));
    if (length == 0) length = log_directory(directory_, sizeof(directory_));
    directory_[length] = '\0';
  }

  int fd_ = -1;
  bool tried_ = false;
  char directory_[4096] = {};  ///< its '/' included; empty: the current one
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_SAMPLE_FILE_HPP

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

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline const collector_backend* builtin_backend() noexcept {
  static constexpr collector_backend table{
      "builtin",
      true,
      []() noexcept {
        // Also when the program ends without detaching.
        return sampler::instance().begin(asked_interval_ns()) &&
               std::atexit([] { sampler::instance().finish(); }) == 0;
      },
      []() noexcept { return sampler::instance().resume(); },
      []() noexcept { return sampler::instance().pause(); },
      []() noexcept { sampler::instance().finish(); },
      []() noexcept { return sampler::instance().interval_ns(); },
      [](const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
        sampler::instance().region(name, begin_ns, end_ns);
      },
  };
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_BUILTIN_HPP

// callgrind: its client requests, written out, so that no header of valgrind is needed and all
// files of a program agree.
#ifndef LOTUS_COLLECTORS_CALLGRIND_HPP
#define LOTUS_COLLECTORS_CALLGRIND_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Numbers of valgrind's requests: running-on-valgrind of the core, the others of tool "CT".
enum class valgrind_request : std::uint64_t {
  running_on_valgrind = 0x1001,
  dump_stats_at = 0x43540003,
  start_instrumentation = 0x43540004,
  stop_instrumentation = 0x43540005,
};

/// Asks valgrind; without it the instructions do nothing and the answer is 0 (valgrind manual, "The
/// Client Request mechanism"). Some 2 ns natively.
inline std::uint64_t ask_valgrind(valgrind_request request, std::uint64_t argument = 0) noexcept {
  volatile std::uint64_t block[6] = {static_cast<std::uint64_t>(request), argument, 0, 0, 0, 0};
  std::uint64_t answer = 0;
#if defined(__x86_64__)
  __asm__ volatile(
      "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(&block[0])
      : "cc", "memory");
#else
  register std::uint64_t in_out __asm__("x3") = 0;
  register const volatile std::uint64_t* in __asm__("x4") = &block[0];
  __asm__ volatile(
      "ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\t"
      "orr x10, x10, x10"
      : "+r"(in_out)
      : "r"(in)
      : "cc", "memory");
  answer = in_out;
#endif
  return answer;
}

inline bool under_valgrind() noexcept {
  return ask_valgrind(valgrind_request::running_on_valgrind) != 0;
}

/// Before the operation's name in a dump that is followed by more of the same run.
inline constexpr char callgrind_part_start[] = "lotus part of ";

/// For `valgrind --tool=callgrind --instr-atstart=no`. Each region becomes a dump of its own.
inline const collector_backend* callgrind_backend() noexcept {
  static constexpr collector_backend table{
      "callgrind",
      true,
      []() noexcept {
        if (under_valgrind()) return true;
        collector_say("LOTUS_COLLECTOR=callgrind, but valgrind does not run this program");
        return false;
      },
      []() noexcept {
        ask_valgrind(valgrind_request::start_instrumentation);
        return true;
      },
      []() noexcept {
        ask_valgrind(valgrind_request::stop_instrumentation);
        return true;
      },
      []() noexcept { ask_valgrind(valgrind_request::stop_instrumentation); },
      []() noexcept { return std::uint64_t{0}; },
      [](const char* name, std::uint64_t, std::uint64_t) noexcept {
        ask_valgrind(valgrind_request::dump_stats_at, reinterpret_cast<std::uintptr_t>(name));
      },
  };
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_CALLGRIND_HPP

// Intel VTune, through the interface between programs and its collector library (ittnotify),
// without ittnotify: the types below are that interface's binary layout.
#ifndef LOTUS_COLLECTORS_ITT_HPP
#define LOTUS_COLLECTORS_ITT_HPP

// Calls into a vendor's library that may never return.
#ifndef LOTUS_COLLECTORS_PATIENT_CALLER_HPP
#define LOTUS_COLLECTORS_PATIENT_CALLER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// A thread that makes the calls, so that one which hangs can be given up. Used by one thread at a
/// time; made anew in a forked child, which has no threads but the one that forked.
class patient_caller {
 public:
  static patient_caller& instance() noexcept {
    static patient_caller caller;
    return caller;
  }

  /// False when `what` has not returned in time; no call may be made after that.
  bool call(void (*what)()) noexcept {
    if (process_ != getpid() && !start()) {
      what();
      return true;
    }
    const std::int64_t until_ns =
        clock_ns(CLOCK_MONOTONIC) + collector_timeout_ms() * std::int64_t{1'000'000};
    const timespec until{static_cast<time_t>(until_ns / 1'000'000'000),
                         static_cast<long>(until_ns % 1'000'000'000)};
    pthread_mutex_lock(&guard_);
    what_ = what;
    pthread_cond_signal(&asked_);
    int error = 0;
    while (what_ != nullptr && error == 0) {
      error = pthread_cond_timedwait(&done_, &guard_, &until);
    }
    const bool returned = what_ == nullptr;
    pthread_mutex_unlock(&guard_);
    return returned;
  }

 private:
  bool start() noexcept {
    pthread_mutex_init(&guard_, nullptr);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&asked_, nullptr);
    pthread_cond_init(&done_, &monotonic);
    pthread_condattr_destroy(&monotonic);
    what_ = nullptr;
    // The program's signals are for its own threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const bool started = pthread_create(&thread, nullptr, serve, this) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!started) return false;
    pthread_detach(thread);
    process_ = getpid();
    return true;
  }

  static void* serve(void* self) noexcept {
    auto& caller = *static_cast<patient_caller*>(self);
    pthread_mutex_lock(&caller.guard_);
    for (;;) {
      while (caller.what_ == nullptr) pthread_cond_wait(&caller.asked_, &caller.guard_);
      void (*what)() = caller.what_;
      pthread_mutex_unlock(&caller.guard_);
      what();
      pthread_mutex_lock(&caller.guard_);
      caller.what_ = nullptr;
      pthread_cond_signal(&caller.done_);
    }
  }

  pid_t process_ = 0;
  pthread_mutex_t guard_{};
  pthread_cond_t asked_{};
  pthread_cond_t done_{};
  void (*what_)() = nullptr;
};

/// Calls `what`, which belongs to a vendor's library; false when it does not return in time.
inline bool call_patiently(void (*what)()) noexcept {
  return patient_caller::instance().call(what);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_PATIENT_CALLER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// VTune sets it to the path of its collector library.
inline constexpr char itt_library_variable[] = "INTEL_LIBITTNOTIFY64";

struct itt_id {
  unsigned long long d1, d2, d3;
};
struct itt_domain {
  volatile int flags;  ///< 0: nothing of this domain is wanted
  const char* name;
  void* name_wide;
  int extra1;
  void* extra2;
  itt_domain* next;
};
struct itt_string_handle;

/// A function that the collector fills in.
struct itt_function {
  const char* name;
  void** function;
  void* first;
  void* none;
  int group;
};

/// `__itt_global` of ittnotify 3.26.
struct itt_global {
  unsigned char magic[8];
  unsigned long version_major, version_minor, version_build;
  volatile long api_initialized, mutex_initialized, atomic_counter;
  pthread_mutex_t mutex;
  void* library;
  void* error_handler;
  const char** library_path;
  itt_function* functions;
  itt_global* next;
  void* threads;
  itt_domain* domains;
  itt_string_handle* strings;
  int state;
  void* counters;
  unsigned events_wanted;
  void* histograms;
  void* counter_metadata;
};

/// VTune's functions, each null where its library has none. Leaked, for it keeps pointers to it.
class itt_library {
 public:
  void (*resume)() = nullptr;
  void (*pause)() = nullptr;
  void (*detach)() = nullptr;
  itt_domain* (*domain_create)(const char*) = nullptr;
  itt_string_handle* (*string_handle_create)(const char*) = nullptr;
  void (*task_begin)(const itt_domain*, itt_id, itt_id, itt_string_handle*) = nullptr;
  void (*task_end)(const itt_domain*) = nullptr;

  /// The library that VTune has named, loaded and set up at the first call; null, after saying why,
  /// when there is none; null also while another thread is loading it and does not get on. Thread
  /// safety: all.
  static itt_library* get() noexcept {
    static found_once<itt_library*> loaded;
    return loaded.get(load, nullptr);
  }

 private:
  static itt_library* load() noexcept {
    const char* path = secure_getenv(itt_library_variable);
    if (path == nullptr || *path == '\0') {
      collector_say("the itt collector needs %s; run the program with vtune", itt_library_variable);
      return nullptr;
    }
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      collector_say("cannot load VTune's collector: %s", dlerror());
      return nullptr;
    }
    static itt_library self;
    // Only a library that was given a program's table collects; its functions looked up by name do
    // nothing before. Old ones know no table.
    using init = void (*)(itt_global*, int);
    if (auto* start = reinterpret_cast<init>(dlsym(library, "__itt_api_init"))) {
      start(self.table(library), all_groups);
    } else {
      for (itt_function* f = self.functions_; f->name != nullptr; ++f) {
        *f->function = dlsym(library, f->name);
      }
    }
    if (self.resume == nullptr || self.pause == nullptr) {
      collector_say("%s is no collector: it has no __itt_resume and __itt_pause", path);
      return nullptr;
    }
    return &self;
  }

  itt_global* table(void* library) noexcept {
    static constexpr unsigned char magic[8] = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30};
    for (std::size_t i = 0; i < sizeof(magic); ++i) global_.magic[i] = magic[i];
    global_.version_major = 3;
    global_.version_minor = 26;
    global_.api_initialized = 1;
    global_.mutex_initialized = 1;
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&global_.mutex, &recursive);
    pthread_mutexattr_destroy(&recursive);
    global_.library = library;
    global_.functions = functions_;
    return &global_;
  }

  static constexpr int all_groups = -1;
  static constexpr int control_group = 1 << 1;
  static constexpr int structure_group = 1 << 12;

  template <class Function>
  static void** place(Function*& f) noexcept {
    return reinterpret_cast<void**>(&f);
  }

  itt_global global_{};
  itt_function functions_[8] = {
      {"__itt_resume", place(resume), nullptr, nullptr, control_group},
      {"__itt_pause", place(pause), nullptr, nullptr, control_group},
      {"__itt_detach", place(detach), nullptr, nullptr, control_group},
      {"__itt_domain_create", place(domain_create), nullptr, nullptr, structure_group},
      {"__itt_string_handle_create", place(string_handle_create), nullptr, nullptr,
       structure_group},
      {"__itt_task_begin", place(task_begin), nullptr, nullptr, structure_group},
      {"__itt_task_end", place(task_end), nullptr, nullptr, structure_group},
      {nullptr, nullptr, nullptr, nullptr, 0},
  };
};

inline const collector_backend* itt_backend() noexcept {
  static constexpr collector_backend table{
      "itt",
      false,
      []() noexcept { return itt_library::get() != nullptr; },
      []() noexcept { return call_patiently([] { itt_library::get()->resume(); }); },
      []() noexcept { return call_patiently([] { itt_library::get()->pause(); }); },
      []() noexcept {
        call_patiently([] {
          itt_library& itt = *itt_library::get();
          itt.pause();
          if (itt.detach != nullptr) itt.detach();
        });
      },
      []() noexcept { return asked_interval_ns(); },
      nullptr,
  };
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_ITT_HPP

// AMD uProf: amdProfileResume and amdProfilePause of libAMDProfileController, found at run time.
#ifndef LOTUS_COLLECTORS_UPROF_HPP
#define LOTUS_COLLECTORS_UPROF_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Resumes or pauses. 4.0 takes 1, for the CPU's profile; 5.1 takes nothing and ignores it, as
/// arguments are passed in registers.
using uprof_call = int (*)(unsigned);

struct uprof_calls {
  uprof_call resume;
  uprof_call pause;
  bool strict;  ///< they return when it is done
};

/// What use_uprof() was given; null: look for exported functions.
inline std::atomic<void (*)()> linked_uprof_resume{nullptr};
inline std::atomic<void (*)()> linked_uprof_pause{nullptr};

/// The functions of one group, strict ones first: a run must never mix both groups.
inline bool find_uprof(void* where, uprof_calls& found) noexcept {
  static constexpr const char* names[][2] = {
      {"amdProfileStrictResume", "amdProfileStrictPause"},
      {"amdProfileStrictResumeImpl", "amdProfileStrictPauseImpl"},
      {"amdProfileResume", "amdProfilePause"},
      {"amdProfileResumeImpl", "amdProfilePauseImpl"},
  };
  for (std::size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    found.resume = reinterpret_cast<uprof_call>(dlsym(where, names[i][0]));
    found.pause = reinterpret_cast<uprof_call>(dlsym(where, names[i][1]));
    found.strict = i < 2;
    if (found.resume != nullptr && found.pause != nullptr) return true;
  }
  return false;
}

inline uprof_calls& uprof_in_use() noexcept {
  static uprof_calls calls{};
  return calls;
}

/// Whether the program has uProf's functions already.
inline bool uprof_is_here() noexcept {
  uprof_calls& calls = uprof_in_use();
  if (linked_uprof_pause.load(std::memory_order_acquire) != nullptr) {
    calls = {[](unsigned) { return linked_uprof_resume.load(std::memory_order_acquire)(), 0; },
             [](unsigned) { return linked_uprof_pause.load(std::memory_order_acquire)(), 0; },
             false};
    return true;
  }
  return find_uprof(RTLD_DEFAULT, calls);
}

template <bool Strict>
const collector_backend* uprof_backend_of() noexcept {
  static constexpr collector_backend table{
      "uprof",
      Strict,
      []() noexcept { return true; },
      []() noexcept { return call_patiently([] { uprof_in_use().resume(1); }); },
      []() noexcept { return call_patiently([] { uprof_in_use().pause(1); }); },
      // uProf cannot detach; it ends with the program.
      []() noexcept { call_patiently([] { uprof_in_use().pause(1); }); },
      []() noexcept { return asked_interval_ns(); },
      nullptr,
  };
  return &table;
}

/// Null, after saying why, where uProf's functions cannot be found.
inline const collector_backend* uprof_backend() noexcept {
  if (!uprof_is_here()) {
    void* library = dlopen("libAMDProfileController.so", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr || !find_uprof(library, uprof_in_use())) {
      collector_say(
          "LOTUS_COLLECTOR=uprof, but neither the program nor libAMDProfileController.so has "
          "amdProfileResume; link it, or name its functions with lotus::use_uprof()");
      return nullptr;
    }
  }
  return uprof_in_use().strict ? uprof_backend_of<true>() : uprof_backend_of<false>();
}

}  // namespace detail

/// For programs that link AMD's static libAMDProfileController, which no look-up at run time finds.
/// In one source file that includes AMDProfileController.h:
///   const bool linked = lotus::use_uprof([] { amdProfileResume(1); }, [] { amdProfilePause(1); });
/// To be called before the first resume(). Returns true.
inline bool use_uprof(void (*resume)(), void (*pause)()) noexcept {
  detail::linked_uprof_resume.store(resume, std::memory_order_release);
  detail::linked_uprof_pause.store(pause, std::memory_order_release);
  return true;
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_UPROF_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The collector that the environment asks for; null for none.
inline const collector_backend* chosen_collector() noexcept {
  const char* text = secure_getenv("LOTUS_COLLECTOR");
  const std::string_view name = text == nullptr || *text == '\0' ? "auto" : text;
  if (name == "none") return nullptr;
  if (name == "itt") return itt_backend();
  if (name == "uprof") return uprof_backend();
  if (name == "perf") return perf_backend();
  if (name == "callgrind") return callgrind_backend();
  if (name == "builtin") return builtin_backend();
  if (name != "auto") {
    collector_say(
        "LOTUS_COLLECTOR=%s is not known; it is one of auto, itt, uprof, perf, callgrind, builtin, "
        "none",
        text);
    return nullptr;
  }
  if (under_valgrind()) return callgrind_backend();
  if (secure_getenv(perf_control_variable) != nullptr) return perf_backend();
  if (secure_getenv(itt_library_variable) != nullptr) return itt_backend();
  return uprof_is_here() ? uprof_backend() : nullptr;
}

/// The collector of the process. Entries of its vtable are called in the object which made it.
class collector_state {
 public:
  collector_state() noexcept : backend_{chosen_collector()} {
    if (exists() && !backend_.load()->begin()) backend_ = nullptr;
  }
  virtual ~collector_state() = default;

  /// False also when it was detached, or does not answer any more.
  bool exists() const noexcept { return backend_.load(std::memory_order_relaxed) != nullptr; }

  /// Collects from the first to the last of nested calls. False where nothing collects.
  virtual bool resume() noexcept {
    const locked hold{guard()};
    const collector_backend* backend = backend_;
    if (backend == nullptr) return false;
    if (depth_++ == 0) check(backend->resume());
    return exists();
  }

  virtual void pause() noexcept {
    const locked hold{guard()};
    const collector_backend* backend = backend_;
    if (backend == nullptr || depth_ == 0) return;
    if (--depth_ == 0) check(backend->pause());
  }

  virtual void detach() noexcept {
    const locked hold{guard()};
    if (const collector_backend* backend = backend_.exchange(nullptr)) backend->detach();
  }

  virtual void region(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
    const locked hold{guard()};
    const collector_backend* backend = backend_;
    if (backend != nullptr && backend->region != nullptr) backend->region(name, begin_ns, end_ns);
  }

  virtual bool acknowledges() const noexcept {
    const collector_backend* backend = backend_;
    return backend == nullptr || backend->acknowledges;
  }
  /// Whether it sees every instruction from resume to pause, the library's own included: callgrind.
  virtual bool counts_instructions() const noexcept {
    return exists() && backend_ == callgrind_backend();
  }
  virtual std::uint64_t interval_ns() const noexcept {
    const collector_backend* backend = backend_;
    return backend == nullptr ? 0 : backend->interval_ns();
  }

 private:
  void check(bool answered) noexcept {
    if (answered) return;
    collector_say("the %s collector does not answer; the program goes on without it",
                  backend_.exchange(nullptr)->name);
  }

  /// In a forked child the lock may be one that a thread of its parent holds.
  mutex& guard() noexcept {
    const pid_t process = getpid();
    if (process_.exchange(process) != process) new (&guard_) mutex;
    return guard_;
  }

  std::atomic<pid_t> process_{getpid()};
  mutex guard_;
  std::atomic<const collector_backend*> backend_;
  int depth_ = 0;
};

/// Bump the number whenever collector_state changes.
inline constexpr char collector_page_name[] = "lotus-collector-3-v" LOTUS_DETAIL_STRINGIZE(
    LOTUS_VERSION_MAJOR) "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MINOR) ";";

/// As find_or_make_hub(): all shared objects of the process find the one collector.
LOTUS_DETAIL_PER_MODULE inline int find_or_make_collector_page(dl_phdr_info*, std::size_t,
                                                               void* result) noexcept {
  auto*& page = *static_cast<std::atomic<collector_state*>**>(result);
  page = static_cast<std::atomic<collector_state*>*>(find_mapping(collector_page_name));
  if (page != nullptr) return 1;
  const int fd = memfd_create(collector_page_name, MFD_CLOEXEC);
  if (fd < 0) return 1;
  if (ftruncate(fd, sizeof(*page)) == 0) {
    void* memory = mmap(nullptr, sizeof(*page), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (memory != MAP_FAILED) page = static_cast<std::atomic<collector_state*>*>(memory);
  }
  close(fd);
  return 1;
}

/// What this object knows of the collector of the process.
struct collector_link {
  std::atomic<bool> none{false};
  found_once<collector_state*> state;
};
LOTUS_DETAIL_PER_MODULE inline collector_link this_collector;

/// The collector of the process, made if there is none yet; null where nothing collects.
LOTUS_DETAIL_PER_MODULE inline collector_state* look_for_collector() noexcept {
  std::atomic<collector_state*>* page = nullptr;
  iterate_objects(find_or_make_collector_page, static_cast<void*>(&page));
  collector_state* state = page != nullptr ? page->load(std::memory_order_acquire) : nullptr;
  if (state == nullptr) {
    auto* fresh = new (map_memory(sizeof(collector_state))) collector_state;
    pin_module_of(&this_collector);
    collector_state* expected = nullptr;
    state = page == nullptr || page->compare_exchange_strong(expected, fresh) ? fresh : expected;
  }
  this_collector.none.store(!state->exists(), std::memory_order_release);
  return state->exists() ? state : nullptr;
}

LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline collector_state* find_collector() noexcept {
  if (this_collector.none.load(std::memory_order_acquire)) return nullptr;
  return this_collector.state.get(look_for_collector, nullptr);
}

}  // namespace detail

/// The profiler that runs this program, if any: Intel VTune, AMD uProf, perf, callgrind, or the
/// built-in sampler. LOTUS_COLLECTOR names it: auto (the default: whichever is there), itt, uprof,
/// perf, callgrind, builtin, none. Collection is of the whole process.
/// Errors: none thrown; what cannot be used is said once on stderr, and the program goes on
/// without. Thread safety: all. Without a collector a call costs one load.
class collector {
 public:
  /// Starts collecting; calls nest.
  LOTUS_DETAIL_ALWAYS_INLINE static void resume() noexcept {
    if (detail::this_collector.none.load(std::memory_order_relaxed)) return;
    if (detail::collector_state* state = detail::find_collector()) state->resume();
  }
  /// Stops collecting, once for each resume().
  LOTUS_DETAIL_ALWAYS_INLINE static void pause() noexcept {
    if (detail::this_collector.none.load(std::memory_order_relaxed)) return;
    if (detail::collector_state* state = detail::find_collector()) state->pause();
  }
  /// Ends collecting for the rest of the program. Again: nothing.
  LOTUS_DETAIL_ALWAYS_INLINE static void detach() noexcept {
    if (detail::this_collector.none.load(std::memory_order_relaxed)) return;
    if (detail::collector_state* state = detail::find_collector()) state->detach();
  }
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTOR_HPP

// Chains of transforms, timed with shared clock reads: k operations take k + 1.
#ifndef LOTUS_COMPOSE_HPP
#define LOTUS_COMPOSE_HPP

#include <functional>
#include <tuple>
#include <utility>
#include <vector>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The name of a type as a person would say it: without what it stands in (namespaces, classes,
/// functions) and without template arguments.
template <class T>
constexpr std::string_view type_name() noexcept {
  // "... [with T = image::Crop<float>; ...]" (g++), "... [T = image::Crop<float>]" (clang)
  const std::string_view text = __PRETTY_FUNCTION__;
  // A function has no type of its own.
  if (std::is_function_v<std::remove_pointer_t<T>> || std::is_member_pointer_v<T>) {
    return "function";
  }
  std::size_t name_at = text.find("T = ") + 4;
  std::size_t name_end = name_at;
  int parentheses = 0;
  bool lambda = false;
  int arguments = 0;  // a '>' in parentheses is none of theirs
  for (std::size_t at = name_at; at < text.size(); ++at) {
    const char c = text[at];
    const bool outside = arguments == 0 && parentheses == 0;
    // "<lambda(int)>" (g++), "(lambda at crop.cpp:7:3)" (clang)
    if (outside && text.substr(at + 1, 6) == "lambda") lambda = true;
    if (c == '<' && parentheses == 0) {
      ++arguments;
    } else if (c == '>' && parentheses == 0) {
      --arguments;
    } else if (c == '(') {
      ++parentheses;
    } else if (c == ')') {
      --parentheses;
    } else if (!outside) {
      continue;
    } else if (c == ';' || c == ']') {
      break;
    } else if (c == ':') {
      name_at = name_end = at + 1;
      lambda = false;
    } else {
      name_end = at + 1;
    }
  }
  if (lambda) return "lambda";
  return name_at == name_end ? "unnamed" : text.substr(name_at, name_end - name_at);
}

/// A run of operations: each ends where the next begins. Logs each when it ends, and "STransform"
/// around all of them when the run ends, also by an exception.
class operation_run {
 public:
  explicit operation_run(record_tag whole) noexcept : whole_{whole} {
    if (!is_recording()) return;
    annotated_ = recording_mode() == recording::annotated;
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_annotation(whole_);
    first_ticks_ = last_ticks_ = now_ticks();
  }
  operation_run(const operation_run&) = delete;
  operation_run& operator=(const operation_run&) = delete;

  /// What runs now. An exception that ends it has it logged up to there.
  LOTUS_DETAIL_ALWAYS_INLINE void running(record_tag tag) noexcept {
    running_ = tag;
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_annotation(tag);
  }

  LOTUS_DETAIL_ALWAYS_INLINE void ended(record_tag tag) noexcept {
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) end_annotation(running_);
    running_ = {};
    if (LOTUS_DETAIL_UNLIKELY(last_ticks_ == 0)) return;
    const std::uint64_t now = now_ticks();
    if (!tag.empty()) push(last_ticks_, now, tag);
    last_ticks_ = now;
  }

  LOTUS_DETAIL_ALWAYS_INLINE ~operation_run() {
    if (LOTUS_DETAIL_UNLIKELY(!running_.empty())) ended(running_);
    if (last_ticks_ != first_ticks_ && !whole_.empty() && is_recording()) {
      push(first_ticks_, last_ticks_, whole_);
    }
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) end_annotation(whole_);
  }

 private:
  record_tag whole_;
  record_tag running_;
  std::uint64_t first_ticks_ = 0;
  std::uint64_t last_ticks_ = 0;
  bool annotated_ = false;
};

struct transform_name {
  static constexpr std::string_view name() noexcept { return "Transform"; }
};
inline record_tag transform_tag() noexcept {
  return call_site_of<transform_name>::site.tag();
}

/// Calls `f` with `value` moved in. What f returns goes on; where it returns nothing, the value
/// that it changed.
template <class F, class T>
LOTUS_DETAIL_ALWAYS_INLINE auto apply_operation(F& f, T&& value) {
  if constexpr (std::is_invocable_v<F&, T&&>) {
    if constexpr (!std::is_void_v<std::invoke_result_t<F&, T&&>>) {
      return std::invoke(f, std::forward<T>(value));
    } else {
      std::invoke(f, std::forward<T>(value));
      return std::decay_t<T>{std::forward<T>(value)};
    }
  } else {
    static_assert(std::is_invocable_v<F&, std::decay_t<T>&>,
                  "an operation must take what the one before it returns");
    std::decay_t<T> own{std::forward<T>(value)};
    if constexpr (std::is_void_v<std::invoke_result_t<F&, std::decay_t<T>&>>) {
      std::invoke(f, own);
      return own;
    } else {
      return std::invoke(f, own);
    }
  }
}

}  // namespace detail

/// A callable and the name under which it is logged. Made by op().
template <class F>
struct operation {
  F call;
  detail::record_tag tag;
};

/// Gives a callable a name: compose(op("Flip", f)).
/// @param name  interned by content.
template <class F>
operation<std::decay_t<F>> op(std::string_view name, F&& f) {
  return {std::forward<F>(f), detail::operation_tag(name)};
}

namespace detail {

template <class T>
struct is_operation : std::false_type {};
template <class F>
struct is_operation<operation<F>> : std::true_type {};

template <class F>
auto as_operation(F&& f) {
  if constexpr (is_operation<std::decay_t<F>>::value) {
    return std::decay_t<F>{std::forward<F>(f)};
  } else {
    return op(type_name<std::decay_t<F>>(), std::forward<F>(f));
  }
}

}  // namespace detail

/// A fixed list of operations, called one after another; made by compose(). Copies when its
/// callables copy. Thread safety: that of the callables.
template <class... Fs>
class composed {
 public:
  explicit composed(operation<Fs>... operations)
      : operations_{std::move(operations)...}, whole_{detail::transform_tag()} {}

  /// Sends `value` through all operations, by move. Logs a line for each and "STransform" for all.
  /// Exceptions of an operation pass through, logged up to there.
  template <class T>
  auto operator()(T&& value) {
    detail::operation_run run{whole_};
    return from<0>(run, std::forward<T>(value));
  }

 private:
  template <std::size_t I, class T>
  LOTUS_DETAIL_ALWAYS_INLINE auto from(detail::operation_run& run, T&& value) {
    if constexpr (I == sizeof...(Fs)) {
      return std::decay_t<T>{std::forward<T>(value)};
    } else {
      auto& operation = std::get<I>(operations_);
      run.running(operation.tag);
      auto result = detail::apply_operation(operation.call, std::forward<T>(value));
      run.ended(operation.tag);
      if constexpr (I + 1 == sizeof...(Fs)) {
        return result;
      } else {
        return from<I + 1>(run, std::move(result));
      }
    }
  }

  std::tuple<operation<Fs>...> operations_;
  detail::record_tag whole_;
};

/// Joins callables into one that times each: `auto t = compose(Resize{224}, op("Flip", f));`
/// Names come from the types unless given by op(). A callable takes what the one before returned,
/// or changes it in place and returns nothing.
template <class... Fs>
auto compose(Fs&&... fs) {
  return std::apply([](auto&&... operations) { return composed{std::move(operations)...}; },
                    std::make_tuple(detail::as_operation(std::forward<Fs>(fs))...));
}

/// A list of operations on `T` put together at run time. Otherwise as compose().
template <class T>
class chain {
 public:
  /// Appends an operation: callable with T, returning T, or with T&, returning nothing.
  /// @param name  interned by content.
  template <class F>
  chain& add(std::string_view name, F&& f) {
    operations_.push_back({wrap(std::forward<F>(f)), detail::operation_tag(name)});
    return *this;
  }

  /// Sends `value` through all operations, by move; returns it unchanged where there are none.
  T operator()(T value) {
    detail::operation_run run{whole_};
    for (auto& operation : operations_) {
      run.running(operation.tag);
      value = operation.call(std::move(value));
      run.ended(operation.tag);
    }
    return value;
  }

  std::size_t size() const noexcept { return operations_.size(); }

 private:
  template <class F>
  static std::function<T(T)> wrap(F&& f) {
    return [call = std::decay_t<F>(std::forward<F>(f))](T value) mutable -> T {
      return detail::apply_operation(call, std::move(value));
    };
  }

  std::vector<operation<std::function<T(T)>>> operations_;
  detail::record_tag whole_ = detail::transform_tag();
};

/// Times straight code by its ends: `laps lap; decode(); lap("Decode"); crop(); lap("Crop");` Each
/// lap begins where the one before ended. "STransform" around all is logged at the end of the
/// block.
class laps {
 public:
  laps() noexcept : run_{detail::transform_tag()} {}

  /// Logs what ran since the lap before, or since construction.
  /// @param name  interned by content.
  void operator()(std::string_view name) noexcept {
    if (detail::is_recording()) run_.ended(detail::operation_tag(name));
  }

 private:
  detail::operation_run run_;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COMPOSE_HPP

// Every public macro; the only reader of LOTUS_DISABLE.
#ifndef LOTUS_MACROS_HPP
#define LOTUS_MACROS_HPP

// LOTUS_MAP_REGION: runs one operation of a probe program so that a profiler sees just that.
#ifndef LOTUS_MAP_HPP
#define LOTUS_MAP_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Makes the compiler believe that `value` is read and written here, so that what computes it or is
/// computed from it stays on its side.
template <class T>
LOTUS_DETAIL_ALWAYS_INLINE void fence_value(T& value) noexcept {
  __asm__ volatile("" : : "r"(&value) : "memory");
}
LOTUS_DETAIL_ALWAYS_INLINE void fence_memory() noexcept {
  __asm__ volatile("" : : : "memory");
}

/// A whole number from the environment; where it is none, or below `least`, that is said.
inline unsigned map_setting(const char* variable, unsigned least, unsigned otherwise) noexcept {
  const char* text = secure_getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const unsigned long value = strtoul(text, &end, 10);
  if (*end == '\0' && *text != '-' && value >= least && value <= 1'000'000'000) {
    return static_cast<unsigned>(value);
  }
  collector_say("%s=%s: must be a number from %u; taken as %u", variable, text, least, otherwise);
  return otherwise;
}

/// Uses up a random time in [0, `longest_ns`), so that the first sample falls anywhere in the
/// operation: a fresh sampler's would always come one interval after it was resumed, and what is
/// shorter would never be seen. A function of its own, which reports leave out by its name; it
/// calls nothing, for samples of that would bear other names.
__attribute__((noinline)) inline void lotus_map_wait(std::uint64_t longest_ns) noexcept {
  // A step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) on a clock's low bits.
  std::uint64_t z = hardware_ticks() + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  z ^= z >> 31U;
  __extension__ using wide = unsigned __int128;
  const auto wait_ticks = static_cast<std::uint64_t>((wide{z} * longest_ns) >> 64U);
  const std::uint64_t start = hardware_ticks();
  while (hardware_ticks() - start < wait_ticks) {
  }
}

/// Hardware ticks a nanosecond, measured for a millisecond at the first call. Not a static that is
/// made once: a child that is forked meanwhile would wait for that for ever.
inline double ticks_per_ns() noexcept {
  static std::atomic<double> known{0};
  const double before = known.load(std::memory_order_relaxed);
  if (before > 0) return before;
  const std::int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
  const std::uint64_t start = hardware_ticks();
  std::int64_t now_ns = start_ns;
  while (now_ns - start_ns < 1'000'000) now_ns = clock_ns(CLOCK_MONOTONIC);
  const double measured =
      static_cast<double>(hardware_ticks() - start) / static_cast<double>(now_ns - start_ns);
  known.store(measured, std::memory_order_relaxed);
  return measured;
}

}  // namespace detail

/// The passes of one LOTUS_MAP_REGION. Lives in the head of its `for`: a block that is left by
/// break, return or an exception ends the pass and pauses.
class map_region {
 public:
  /// @param name  of the operation; copied, up to 255 bytes.
  explicit map_region(std::string_view name) noexcept {
    std::memcpy(name_, name.data(), name.size() < sizeof(name_) ? name.size() : sizeof(name_) - 1);
    list();
    const char* picked = secure_getenv("LOTUS_MAP_OP");
    if (picked != nullptr && *picked != '\0' && name != picked) return;
    // The session's own thread first, so that it does not count as started by the program.
    static_cast<void>(detail::is_recording());
    collector_ = detail::find_collector();
    if (collector_ != nullptr && !collector_->exists()) collector_ = nullptr;
    if (collector_ == nullptr) return;
    warm_up_ = detail::map_setting("LOTUS_MAP_WARMUP", 0, 4);
    passes_ = detail::map_setting("LOTUS_MAP_PASSES", 1, 1);
    counts_instructions_ = collector_->counts_instructions();
    interval_ticks_ = static_cast<std::uint64_t>(static_cast<double>(collector_->interval_ns()) *
                                                 detail::ticks_per_ns());
  }
  map_region(const map_region&) = delete;
  map_region& operator=(const map_region&) = delete;
  ~map_region() {
    end_pass();
    if (pass_ > 0 && pass_ <= warm_up_) {
      detail::collector_say(
          "region %s was left in its warm-up, by break, return or an exception: nothing of it is "
          "collected; with LOTUS_MAP_WARMUP=0 its first pass is",
          name_);
    }
  }

  /// Ends a pass and begins the next; false when there is none.
  __attribute__((noinline)) bool next() noexcept {
    end_pass();
    if (pass_ == warm_up_ + passes_) return false;
    if (pass_++ >= warm_up_) begin_pass();
    return true;
  }

 private:
  void begin_pass() noexcept {
    // Interned and joined now: not within the region.
    tag_ = detail::is_recording() ? detail::operation_tag(name_) : detail::record_tag{};
    collecting_ = true;
    outer_ = innermost();
    innermost() = this;
    if (collector_ != nullptr) {
      if (counts_instructions_ && outer_ != nullptr) outer_->dump_part();
      if (!collector_->acknowledges()) sleep_ms(detail::map_setting("LOTUS_MAP_SLEEP_MS", 0, 1000));
      if (!counts_instructions_) collector_->resume();
      detail::lotus_map_wait(interval_ticks_);
    }
    // What reading the clock takes lies outside.
    const std::uint64_t before = detail::hardware_ticks();
    begin_ns_ = detail::clock_ns(CLOCK_MONOTONIC);
    begin_ticks_ = detail::now_ticks();
    begin_ns_ += ns_since(before);
    // callgrind sees every instruction: it is switched last here, and first below.
    if (counts_instructions_) detail::ask_valgrind(detail::valgrind_request::start_instrumentation);
  }

  void end_pass() noexcept {
    if (!collecting_) return;
    collecting_ = false;
    if (counts_instructions_) detail::ask_valgrind(detail::valgrind_request::stop_instrumentation);
    const std::uint64_t end_ticks = detail::now_ticks();
    const std::uint64_t end = detail::hardware_ticks();
    std::int64_t end_ns = detail::clock_ns(CLOCK_MONOTONIC);
    end_ns -= ns_since(end);
    if (collector_ != nullptr) {
      if (!counts_instructions_) collector_->pause();
      collector_->region(name_, static_cast<std::uint64_t>(begin_ns_),
                         static_cast<std::uint64_t>(end_ns));
    }
    if (!tag_.empty() && detail::is_recording()) detail::push(begin_ticks_, end_ticks, tag_);
    innermost() = outer_;
    if (counts_instructions_ && outer_ != nullptr) {
      detail::ask_valgrind(detail::valgrind_request::start_instrumentation);
    }
  }

  /// callgrind's counts are nobody's until they are dumped: those so far are this region's, those
  /// of one within it are not.
  void dump_part() noexcept {
    detail::ask_valgrind(detail::valgrind_request::stop_instrumentation);
    char name[sizeof(detail::callgrind_part_start) + sizeof(name_)];
    std::memcpy(name, detail::callgrind_part_start, sizeof(detail::callgrind_part_start));
    std::memcpy(name + sizeof(detail::callgrind_part_start) - 1, name_, sizeof(name_));
    collector_->region(name, 0, 0);
  }

  /// The region of this thread that collects, the inner of nested ones.
  static map_region*& innermost() noexcept {
    static thread_local map_region* region = nullptr;
    return region;
  }

  std::int64_t ns_since(std::uint64_t ticks) const noexcept {
    if (collector_ == nullptr) return 0;  // nobody asks
    return static_cast<std::int64_t>(static_cast<double>(detail::hardware_ticks() - ticks) /
                                     detail::ticks_per_ns());
  }

  /// Tells lotus-tool, where it asks, which operations there are.
  void list() const noexcept {
    const char* path = secure_getenv("LOTUS_MAP_LIST");
    if (path == nullptr || *path == '\0') return;
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return detail::collector_say("cannot write %s: %s", path, std::strerror(errno));
    char line[sizeof(name_) + 1];
    const std::size_t length = std::strlen(name_);
    std::memcpy(line, name_, length);
    line[length] = '\n';
    if (write(fd, line, length + 1) < 0) {
      detail::collector_say("cannot write %s: %s", path, std::strerror(errno));
    }
    close(fd);
  }

  static void sleep_ms(unsigned ms) noexcept {
    timespec left{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1'000'000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
  }

  char name_[256] = {};
  detail::collector_state* collector_ = nullptr;
  unsigned warm_up_ = 0;
  unsigned passes_ = 1;
  unsigned pass_ = 0;
  bool collecting_ = false;
  bool counts_instructions_ = false;
  map_region* outer_ = nullptr;
  std::uint64_t interval_ticks_ = 0;
  detail::record_tag tag_;
  std::uint64_t begin_ticks_ = 0;
  std::int64_t begin_ns_ = 0;
};

/// A region with what its block takes and gives: that is computed neither before nor after a pass.
/// Without it the compiler may move a pure function of local values out of the region.
template <class... Values>
class fenced_map_region {
 public:
  /// @param values  borrowed; must outlive the region.
  explicit fenced_map_region(std::string_view name, Values&... values) noexcept
      : region_{name}, values_{values...} {}

  LOTUS_DETAIL_ALWAYS_INLINE bool next() noexcept {
    fence();
    const bool more = region_.next();
    fence();
    return more;
  }

 private:
  LOTUS_DETAIL_ALWAYS_INLINE void fence() noexcept {
    std::apply([](auto&... values) { (detail::fence_value(values), ...); }, values_);
    detail::fence_memory();
  }

  map_region region_;
  std::tuple<Values&...> values_;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_MAP_HPP

// Each scope macro is one declaration, so it is safe after `if (c)`; each event macro is one
// expression. With LOTUS_DISABLE the arguments are still type-checked and never evaluated.
#if defined(LOTUS_DISABLE)
  #define LOTUS_DETAIL_SCOPE(type, argument)                                 \
    [[maybe_unused]] const int LOTUS_DETAIL_CONCAT(lotus_scope_, __LINE__) = \
        true ? 0 : (static_cast<void>(argument), 0)
  #define LOTUS_DETAIL_SITE(name) (name)
  #define LOTUS_DETAIL_EVENT(function, argument) \
    static_cast<void>(true ? 0 : (static_cast<void>(argument), 0))
  #define LOTUS_DETAIL_COLLECTOR(function) static_cast<void>(0)
  #define LOTUS_DETAIL_REGION(variable, ...) \
    for (bool variable = true; variable;     \
         variable = true ? false             \
                         : (static_cast<void>(::lotus::fenced_map_region{__VA_ARGS__}), false))
#else
  #define LOTUS_DETAIL_SCOPE(type, argument)                          \
    const ::lotus::type LOTUS_DETAIL_CONCAT(lotus_scope_, __LINE__) { \
      argument                                                        \
    }
  #define LOTUS_DETAIL_SITE(literal)                                            \
    []() noexcept -> ::lotus::detail::call_site& {                              \
      struct here {                                                             \
        static constexpr ::std::string_view name() noexcept { return literal; } \
      };                                                                        \
      return ::lotus::detail::call_site_of<here>::site;                         \
    }()
  #define LOTUS_DETAIL_EVENT(function, argument) ::lotus::function(argument)
  #define LOTUS_DETAIL_COLLECTOR(function) ::lotus::collector::function()
  #define LOTUS_DETAIL_REGION(variable, ...) \
    for (::lotus::fenced_map_region variable{__VA_ARGS__}; variable.next();)
#endif

/// Logs "S<name>" for the time from here to the end of the block. The name is a string literal.
#define LOTUS_SCOPE(name) LOTUS_DETAIL_SCOPE(scope, LOTUS_DETAIL_SITE(name))
/// The same with a name known only at run time: anything a std::string_view is made from.
#define LOTUS_SCOPE_DYNAMIC(name) LOTUS_DETAIL_SCOPE(scope, ::std::string_view{name})

/// Scope in a worker around all that makes batch `i`.
#define LOTUS_BATCH_PREPROCESSED(i) \
  LOTUS_DETAIL_SCOPE(batch_preprocessed, static_cast<::std::uint64_t>(i))
/// Scope in the consumer around its wait for batch `i`.
#define LOTUS_BATCH_WAIT(i) LOTUS_DETAIL_SCOPE(batch_wait, static_cast<::std::uint64_t>(i))
/// In the consumer: batch `i` came out of order and is put aside.
#define LOTUS_BATCH_ARRIVED(i) LOTUS_DETAIL_EVENT(batch_arrived, static_cast<::std::uint64_t>(i))
/// In the consumer: batch `i` is handed over.
#define LOTUS_BATCH_CONSUMED(i) LOTUS_DETAIL_EVENT(batch_consumed, static_cast<::std::uint64_t>(i))
/// In the consumer: the work for batch `i` is given to a worker.
#define LOTUS_BATCH_QUEUED(i) LOTUS_DETAIL_EVENT(batch_queued, static_cast<::std::uint64_t>(i))

/// The profiler that runs this program, if any, collects from here on; see lotus::collector.
#define LOTUS_RESUME() LOTUS_DETAIL_COLLECTOR(resume)
/// It stops; once for each LOTUS_RESUME().
#define LOTUS_PAUSE() LOTUS_DETAIL_COLLECTOR(pause)
/// It collects nothing more until the program ends.
#define LOTUS_DETACH() LOTUS_DETAIL_COLLECTOR(detach)

/// In a probe program: LOTUS_MAP_REGION("Crop", in, out) { out = crop(in); } Its block is one
/// operation. Under a collector it runs for warm-up (LOTUS_MAP_WARMUP passes, 4 by default), then
/// LOTUS_MAP_PASSES (1) passes that are collected, and logged like a scope; else exactly once.
/// LOTUS_MAP_OP picks the only region to collect. Behind the name stand the variables that the
/// block takes and gives, so that the compiler moves no work on them out of the block.
#define LOTUS_MAP_REGION(...) \
  LOTUS_DETAIL_REGION(LOTUS_DETAIL_CONCAT(lotus_region_, __LINE__), __VA_ARGS__)

#endif  // LOTUS_MACROS_HPP

// The one session of a process: start and stop, the environment, shared objects, fork.
#ifndef LOTUS_SESSION_HPP
#define LOTUS_SESSION_HPP

// Scopes as tasks on a profiler's timeline: LOTUS_ANNOTATE=itt, under Intel VTune.
#ifndef LOTUS_ANNOTATE_HPP
#define LOTUS_ANNOTATE_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The tasks' domain; null where there is to be none.
LOTUS_DETAIL_PER_MODULE inline found_once<const itt_domain*> annotation_domain;

/// Finds out whether the environment asks for it and VTune is there. The first call loads VTune's
/// library: not to be made under a lock. Errors: said once on stderr. Thread safety: all.
LOTUS_DETAIL_PER_MODULE inline void choose_annotation() noexcept {
  annotation_domain.get(
      []() noexcept -> const itt_domain* {
        const char* text = secure_getenv("LOTUS_ANNOTATE");
        if (text == nullptr || *text == '\0') return nullptr;
        if (std::string_view{text} != "itt") {
          collector_say("LOTUS_ANNOTATE=%s is not known; it can be itt", text);
          return nullptr;
        }
        const itt_library* itt = itt_library::get();
        const bool has_tasks = itt != nullptr && itt->domain_create != nullptr &&
                               itt->string_handle_create != nullptr && itt->task_begin != nullptr &&
                               itt->task_end != nullptr;
        return has_tasks ? itt->domain_create("lotus") : nullptr;
      },
      nullptr);
}

/// What choose_annotation() has found; false until it has.
LOTUS_DETAIL_PER_MODULE inline bool annotation_wanted() noexcept {
  return annotation_domain.known(nullptr) != nullptr;
}

/// Begins a task of this thread. Only where annotation_wanted().
/// @param name  copied; VTune finds its handle by content.
LOTUS_DETAIL_PER_MODULE inline void begin_task(std::string_view name) noexcept {
  char text[256];
  const std::size_t length = name.size() < sizeof(text) ? name.size() : sizeof(text) - 1;
  if (length > 0) std::memcpy(text, name.data(), length);
  text[length] = '\0';
  const itt_library& itt = *itt_library::get();
  itt.task_begin(annotation_domain.known(nullptr), itt_id{}, itt_id{},
                 itt.string_handle_create(text));
}

/// Ends the task of this thread that began last.
LOTUS_DETAIL_PER_MODULE inline void end_task() noexcept {
  itt_library::get()->task_end(annotation_domain.known(nullptr));
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_ANNOTATE_HPP

// The directory of a run: found or made, and what lies in it.
#ifndef LOTUS_DIRECTORY_HPP
#define LOTUS_DIRECTORY_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// "run/lotustrace_log" as directory "run" and prefix "lotustrace_log".
struct log_location {
  char directory[4096];
  char prefix[max_prefix_bytes + 1];

  /// Returns 0 or errno.
  int parse(std::string_view log_file) noexcept {
    const std::size_t slash = log_file.rfind('/');
    const std::string_view folder = slash == std::string_view::npos ? "."
                                    : slash == 0                    ? "/"
                                                                    : log_file.substr(0, slash);
    std::string_view name = slash == std::string_view::npos ? log_file : log_file.substr(slash + 1);
    if (name.empty()) name = "lotustrace_log";
    if (folder.size() >= sizeof(directory) || name.size() >= sizeof(prefix)) return ENAMETOOLONG;
    std::memcpy(directory, folder.data(), folder.size());
    directory[folder.size()] = '\0';
    std::memcpy(prefix, name.data(), name.size());
    prefix[name.size()] = '\0';
    return 0;
  }

  /// Opens the directory, made with its parents where missing. Returns a descriptor or -errno.
  int open_directory() noexcept {
    for (char* p = directory + 1; *p != '\0'; ++p) {
      if (*p != '/') continue;
      *p = '\0';
      const int made = mkdir(directory, 0777);
      const int error = errno;
      *p = '/';
      if (made != 0 && error != EEXIST) break;  // what is wrong with it, open() will say
    }
    if (mkdir(directory, 0777) != 0 && errno != EEXIST) return -errno;
    const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
      const int error = errno;
      close(fd);
      return -error;
    }
    return fd;
  }
};

/// Calls `each(name)` for every entry of the directory behind descriptor `directory` (borrowed).
/// Without opendir(), which allocates: it may be a handler that interrupted malloc which records.
template <class Each>
void for_each_entry(int directory, Each&& each) noexcept {
  const int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  // As getdents64(2) fills it: inode, offset, length of the entry, type, name.
  constexpr std::size_t length_at = 16;
  constexpr std::size_t name_at = 19;
  alignas(8) char entries[2048];
  long bytes = 0;
  while ((bytes = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
    for (const char* at = entries; at < entries + bytes;) {
      each(at + name_at);
      std::uint16_t length = 0;
      std::memcpy(&length, at + length_at, sizeof(length));
      at += length;
    }
  }
  close(fd);
}

/// Whether `name` is a log of the runs with this prefix.
inline bool is_log_name(const char* name, const char* prefix) noexcept {
  const std::size_t n = std::strlen(prefix);
  if (std::strncmp(name, prefix, n) != 0) return false;
  return std::strncmp(name + n, "_main_pid_", 10) == 0 ||
         std::strncmp(name + n, "_worker_pid_", 12) == 0;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_DIRECTORY_HPP

// The shared objects of the process that record: each learns whether recording is on.
#ifndef LOTUS_MODULES_HPP
#define LOTUS_MODULES_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: all. Called with signals blocked.
class module_list {
 public:
  /// Tells `m` all it must know, now and at every later set_mode(); adds it if it is new.
  void tell(module_state& m, const services& table, bool hardware_clock, recording mode) noexcept {
    const locked hold{lock_};
    if (m.hub.load(std::memory_order_relaxed) == nullptr) {
      m.next = first_;
      first_ = &m;
    }
    m.hardware_clock.store(hardware_clock, std::memory_order_relaxed);
    m.hub.store(&table, std::memory_order_release);
    m.mode.store(mode, std::memory_order_release);
  }

  void remove(const module_state& m) noexcept {
    const locked hold{lock_};
    for (module_state** at = &first_; *at != nullptr; at = &(*at)->next) {
      if (*at == &m) {
        *at = m.next;
        return;
      }
    }
  }

  void set_mode(recording mode) noexcept {
    const locked hold{lock_};
    for (module_state* m = first_; m != nullptr; m = m->next) {
      m->mode.store(mode, std::memory_order_release);
    }
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  mutex lock_;
  module_state* first_ = nullptr;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_MODULES_HPP

// Takes the records of all threads and sees that they reach the logs.
#ifndef LOTUS_RECORDER_HPP
#define LOTUS_RECORDER_HPP

// The thread that drains in the background. A convenience: nothing depends on it.
#ifndef LOTUS_DRAIN_THREAD_HPP
#define LOTUS_DRAIN_THREAD_HPP

#include <linux/futex.h>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Calls a function at intervals. Detached and never joined: the process may end at any moment.
/// Thread safety: all functions; the caller has signals blocked, which the thread inherits.
class drain_thread {
 public:
  /// @param round  called with `context`; returns the pause until the next round in ms, 0 to sleep
  /// until wake() is called again.
  drain_thread(std::uint32_t (*round)(void*) noexcept, void* context) noexcept
      : round_{round}, context_{context} {}

  /// Starts the thread, or the next round where it runs. Where there can be no thread, there is
  /// none.
  void wake() noexcept {
    wakes_.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &wakes_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    if (runs_.load(std::memory_order_relaxed) || runs_.exchange(true)) return;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    if (pthread_create(&thread, &detached, run, this) != 0) runs_.store(false);
    pthread_attr_destroy(&detached);
  }

  /// Whether there is a thread; not in a child that was just forked.
  bool runs() const noexcept { return runs_.load(std::memory_order_relaxed); }

  /// In a forked child, where the thread is not.
  void forget() noexcept { runs_.store(false, std::memory_order_relaxed); }

 private:
  static void* run(void* self) noexcept {
    pthread_setname_np(pthread_self(), "lotus-drain");
    auto& thread = *static_cast<drain_thread*>(self);
    for (;;) {
      const std::uint32_t seen = thread.wakes_.load(std::memory_order_acquire);
      const std::uint32_t pause_ms = thread.round_(thread.context_);
      const timespec pause{pause_ms / 1000, static_cast<long>(pause_ms % 1000) * 1'000'000};
      syscall(SYS_futex, &thread.wakes_, FUTEX_WAIT_PRIVATE, seen, pause_ms == 0 ? nullptr : &pause,
              nullptr, 0);
    }
  }

  std::uint32_t (*round_)(void*) noexcept;
  void* context_;
  std::atomic<std::uint32_t> wakes_{0};
  std::atomic<bool> runs_{false};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_DRAIN_THREAD_HPP

// What the library says: one line, to the program's handler or to stderr.
#ifndef LOTUS_MESSAGE_HPP
#define LOTUS_MESSAGE_HPP

// Lines to append-only log files.
#ifndef LOTUS_WRITER_HPP
#define LOTUS_WRITER_HPP

#include <errno.h>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Writes "<prefix>_<main|worker>_pid_<tid>" to `out` (prefix + 40 bytes).
inline void put_log_name(char* out, std::size_t bytes, const char* prefix, log_role role,
                         std::uint32_t tid) noexcept {
  std::snprintf(out, bytes, "%s_%s_pid_%u", prefix, role == log_role::main ? "main" : "worker",
                tid);
}

/// Appends all of `data`; resumes after EINTR and short writes. Returns 0 or errno.
inline int write_all(int fd, const char* data, std::size_t bytes) noexcept {
  while (bytes > 0) {
    const ssize_t n = write(fd, data, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;
    data += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return 0;
}

/// Appends to the logs of one ring. Every append is bracketed by commits, so a death in between
/// leaves bytes that are known to be half an append, and only those.
class log_appender {
 public:
  /// @param directory  descriptor of the logs' directory, borrowed.
  /// @param logs       borrowed; opened where closed, left open.
  log_appender(int directory, const char* prefix, ring_block& ring, open_logs& logs) noexcept
      : directory_{directory}, prefix_{prefix}, ring_{ring}, fds_{logs.fds} {}
  log_appender(const log_appender&) = delete;
  log_appender& operator=(const log_appender&) = delete;

  /// Marks the log as about to grow. Returns 0 or errno.
  int begin(log_role role) noexcept {
    int& fd = fds_[static_cast<std::size_t>(role)];
    struct stat status {};
    if (fd >= 0) {
      const bool there = fstat(fd, &status) == 0;
      const std::uint64_t inode = ring_.committed().logs[static_cast<std::size_t>(role)].inode;
      if (!there || (inode != 0 && inode != status.st_ino)) {
        fd = -1;  // the program has closed it, and the number is nobody's or another file's
      } else if (status.st_nlink == 0) {
        close(fd);  // deleted while it was open: a new one is made
        fd = -1;
      }
    }
    if (fd < 0) {
      fd = open_log(role, O_CREAT);
      if (fd < 0 || fstat(fd, &status) != 0) return errno;
    }
    commit_point c = ring_.committed();
    c.logs[static_cast<std::size_t>(role)] = {static_cast<std::uint64_t>(status.st_ino),
                                              static_cast<std::uint64_t>(status.st_size), true};
    ring_.commit(c);
    return 0;
  }

  /// Appends whole lines after begin(). On an error the file is as it was before. Returns 0 or
  /// errno.
  int append(log_role role, const char* lines, std::size_t bytes) noexcept {
    const int error = write_all(fds_[static_cast<std::size_t>(role)], lines, bytes);
    if (error != 0) {
      undo(role);
      return error;
    }
    appended_[static_cast<std::size_t>(role)] = bytes;
    return 0;
  }

  /// Takes back what was appended since the last commit.
  void undo(log_role role) noexcept {
    const auto i = static_cast<std::size_t>(role);
    commit_point c = ring_.committed();
    appended_[i] = 0;
    if (!c.logs[i].appending) return;
    if (fds_[i] >= 0 && ftruncate(fds_[i], static_cast<off_t>(c.logs[i].length)) != 0) return;
    c.logs[i].appending = false;
    ring_.commit(c);
  }

  /// Says that the records before `tail` of `lane` stand in the logs.
  void commit(std::size_t lane, std::uint64_t tail) noexcept {
    commit_point c = ring_.committed();
    c.tail[lane] = tail;
    commit_lines(c);
  }

  /// Says that what was appended, of records of another ring, is whole.
  void commit_lines() noexcept { commit_lines(ring_.committed()); }

  /// Cuts off what a death left of an append. Call it before anything else is appended.
  void undo_torn() noexcept {
    for (std::size_t i = 0; i < log_roles; ++i) {
      const log_position at = ring_.committed().logs[i];
      if (!at.appending) continue;
      if (fds_[i] < 0) fds_[i] = open_log(static_cast<log_role>(i), 0);
      struct stat status {};
      if (fds_[i] >= 0 && fstat(fds_[i], &status) == 0 && status.st_ino == at.inode &&
          static_cast<std::uint64_t>(status.st_size) > at.length) {
        undo(static_cast<log_role>(i));
      }
    }
  }

 private:
  void commit_lines(commit_point c) noexcept {
    for (std::size_t i = 0; i < log_roles; ++i) {
      c.logs[i].length += appended_[i];
      c.logs[i].appending = false;
      appended_[i] = 0;
    }
    ring_.commit(c);
  }

  int open_log(log_role role, int flags) const noexcept {
    char name[max_prefix_bytes + 48];
    put_log_name(name, sizeof(name), prefix_, role, ring_.tid.load(std::memory_order_relaxed));
    return openat(directory_, name, O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0666);
  }

  int directory_;
  const char* prefix_;
  ring_block& ring_;
  int (&fds_)[log_roles];
  std::size_t appended_[log_roles] = {};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_WRITER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

class messenger {
 public:
  void use(void (*handler)(const char*)) noexcept { handler_ = handler; }

  /// Says one line, printf-like. Allocates nothing.
  __attribute__((format(printf, 2, 3))) void say(const char* format, ...) const noexcept {
    constexpr std::size_t head = 7;
    char line[4096 + 512] = "lotus: ";
    va_list values;
    va_start(values, format);
    const int n = std::vsnprintf(line + head, sizeof(line) - head - 1, format, values);
    va_end(values);
    if (n < 0) return;
    if (handler_ != nullptr) return handler_(line + head);
    const std::size_t length = std::strlen(line);
    line[length] = '\n';
    write_all(STDERR_FILENO, line, length + 1);
  }

 private:
  void (*handler_)(const char*) = nullptr;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_MESSAGE_HPP

// The producers of all threads: found, added, and taken from threads that are dead.
#ifndef LOTUS_PRODUCERS_HPP
#define LOTUS_PRODUCERS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline std::uint32_t thread_id() noexcept {
  return static_cast<std::uint32_t>(syscall(SYS_gettid));
}

inline bool thread_is_dead(std::uint32_t tid) noexcept {
  return syscall(SYS_tgkill, getpid(), static_cast<pid_t>(tid), 0) != 0 && errno == ESRCH;
}

/// A list that only grows, so it is read without a lock; places in it are used again.
class LOTUS_DETAIL_PER_MODULE producer_list {
 public:
  template <class Each>
  void for_each(Each&& each) const noexcept {
    for (producer* p = first_.load(std::memory_order_acquire); p != nullptr; p = p->next) each(*p);
  }

  /// A producer for this thread; null where there is no memory.
  /// @param retire  bool(producer&): empties a dead thread's producer; false when it cannot.
  /// @param adopt   void(producer&): makes one ready for this thread.
  template <class Retire, class Adopt>
  producer* for_this_thread(Retire&& retire, Adopt&& adopt) noexcept {
    const locked hold{lock_};
    const std::uint32_t tid = thread_id();
    // One with our thread id is ours through another shared object, or that of a dead thread whose
    // id and logs we inherit: two rings must never feed one log.
    if (producer* p = find(tid)) return p;
    producer* p = find(0);
    if (p == nullptr && count_ >= reap_at_) {
      reap(retire);
      p = find(0);
    }
    if (p == nullptr) p = add();
    if (p != nullptr) {
      p->tid.store(tid, std::memory_order_relaxed);
      adopt(*p);
    }
    return p;
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::size_t at_once = 64;

  producer* find(std::uint32_t tid) const noexcept {
    producer* p = first_.load(std::memory_order_acquire);
    while (p != nullptr && p->tid.load(std::memory_order_relaxed) != tid) p = p->next;
    return p;
  }

  /// Frees the producers of dead threads. No hook runs when a thread ends, so the last of its
  /// thread_local destructors may still record. The next time comes when there are twice as many as
  /// live now: rings stay bounded, and a new thread costs little.
  template <class Retire>
  void reap(Retire&& retire) noexcept {
    std::size_t living = 0;
    for_each([&](producer& p) {
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      if (tid == 0) return;
      if (thread_is_dead(tid) && retire(p)) {
        p.tid.store(0, std::memory_order_relaxed);
      } else {
        ++living;
      }
    });
    reap_at_ = 2 * living + 8;
  }

  producer* add() noexcept {
    if (spare_count_ == 0) {
      spare_ = static_cast<producer*>(map_memory(at_once * sizeof(producer)));
      if (spare_ == nullptr) return nullptr;
      spare_count_ = at_once;
    }
    auto* p = new (spare_++) producer;
    --spare_count_;
    ++count_;
    p->next = first_.load(std::memory_order_relaxed);
    first_.store(p, std::memory_order_release);
    return p;
  }

  mutex lock_;
  std::atomic<producer*> first_{nullptr};
  std::size_t count_ = 0;
  std::size_t reap_at_ = 8;
  producer* spare_ = nullptr;
  std::size_t spare_count_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_PRODUCERS_HPP

// The running session's clock: when the map from ticks to time is tied again.
#ifndef LOTUS_SESSION_CLOCK_HPP
#define LOTUS_SESSION_CLOCK_HPP

// Records to Lotus lines.
#ifndef LOTUS_LINE_HPP
#define LOTUS_LINE_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr std::int64_t placeholder_ns =
    1000;  ///< the duration of events, and of no real wait
/// Room that one line needs: its name, two numbers with the bytes that writing them touches.
inline constexpr std::size_t max_line_bytes = max_line_name_bytes + 1 + 24 + 1 + 24 + 1;

/// Turns ticks into ns since the epoch for one drain. Take it after the ring's head was read: then
/// every record to be converted ended in or before the newest segment.
class tick_converter {
 public:
  /// @param guard  held while `map` is read; null where nobody else has the map.
  tick_converter(const clock_map& map, mutex* guard) noexcept : map_{map}, guard_{guard} {
    if (guard_ != nullptr) guard_->lock();
    newest_ = map_.current();
    if (guard_ != nullptr) guard_->unlock();
  }

  struct span {
    std::int64_t start_ns;
    std::int64_t duration_ns;
  };

  span convert(std::uint64_t begin_ticks, std::uint64_t end_ticks) const noexcept {
    if (LOTUS_DETAIL_LIKELY(begin_ticks >= newest_.start_ticks)) {
      const std::int64_t start_ns = newest_.to_ns(begin_ticks);
      return {start_ns, newest_.to_ns(end_ticks) - start_ns};
    }
    const clock_segment b = segment(begin_ticks);
    const clock_segment e = segment(end_ticks);
    const std::int64_t start_ns = b.to_ns(begin_ticks);
    return {start_ns, (e.to_ns(end_ticks) - e.jumped_ns) - (start_ns - b.jumped_ns)};
  }

 private:
  clock_segment segment(std::uint64_t ticks) const noexcept {
    if (ticks >= newest_.start_ticks) return newest_;
    if (guard_ != nullptr) guard_->lock();
    const clock_segment found = map_.at(ticks);
    if (guard_ != nullptr) guard_->unlock();
    return found;
  }

  const clock_map& map_;
  mutex* guard_;
  clock_segment newest_{};
};

/// The eight decimal digits of a number below 10^8 as characters, the first in the lowest byte.
/// Four, then two, then one digit a lane, all lanes in one multiplication: division by 100 as (x *
/// 10486) >> 20 is exact below 10^4, by 10 as (x * 103) >> 10 below 100 (checked by a test, for
/// every lane).
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t eight_digits(std::uint32_t below_1e8) noexcept {
  const std::uint64_t fours =
      below_1e8 / 10'000 | (static_cast<std::uint64_t>(below_1e8 % 10'000) << 32);
  const std::uint64_t hundreds = ((fours * 10'486) >> 20) & 0x0000007F'0000007FU;
  const std::uint64_t twos = hundreds | ((fours - hundreds * 100) << 16);
  const std::uint64_t tens = ((twos * 103) >> 10) & 0x000F000F'000F000FU;
  return (tens | ((twos - tens * 10) << 8)) + 0x30303030'30303030U;
}

/// How many decimal digits a number below 10^9 has: 1233 / 4096 is just above log10(2).
LOTUS_DETAIL_ALWAYS_INLINE unsigned digit_count(std::uint32_t below_1e9) noexcept {
  constexpr std::uint32_t powers[] = {1,       10,        100,        1'000,       10'000,
                                      100'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};
  const auto bits = static_cast<unsigned>(32 - __builtin_clz(below_1e9 | 1));
  const unsigned guess = (bits * 1233) >> 12;
  return guess + (below_1e9 >= powers[guess] ? 1 : 0);
}

/// Writes a number below 10^8 without leading zeros; returns the end. Touches 8 bytes.
LOTUS_DETAIL_ALWAYS_INLINE char* put_number_below_1e8(char* out, std::uint32_t value) noexcept {
  // Counted apart from the digits: where the next line goes need not wait for these.
  const unsigned count = value == 0 ? 1 : digit_count(value);
  const std::uint64_t digits = eight_digits(value) >> (8 * (8 - count));
  std::memcpy(out, &digits, 8);
  return out + count;
}

/// Writes `value` in decimal; returns the end. Touches at most 24 bytes.
LOTUS_DETAIL_ALWAYS_INLINE char* put_number(char* out, std::uint64_t value) noexcept {
  constexpr std::uint64_t e8 = 100'000'000;
  std::uint64_t rest[2];
  int groups = 0;
  for (; LOTUS_DETAIL_UNLIKELY(value >= e8); value /= e8) {
    rest[groups++] = eight_digits(static_cast<std::uint32_t>(value % e8));
  }
  out = put_number_below_1e8(out, static_cast<std::uint32_t>(value));
  for (; LOTUS_DETAIL_UNLIKELY(groups > 0); out += 8) std::memcpy(out, &rest[--groups], 8);
  return out;
}

/// Copies a short text without a call; `bytes` may be anything.
LOTUS_DETAIL_ALWAYS_INLINE void copy_short(char* out, const char* text,
                                           std::size_t bytes) noexcept {
  if (LOTUS_DETAIL_LIKELY(bytes >= 8 && bytes <= 32)) {
    // Pairs of moves that overlap in the middle.
    const std::size_t step = bytes >= 16 ? 16 : 8;
    if (step == 16) {
      std::memcpy(out, text, 16);
      std::memcpy(out + bytes - 16, text + bytes - 16, 16);
    } else {
      std::memcpy(out, text, 8);
      std::memcpy(out + bytes - 8, text + bytes - 8, 8);
    }
  } else {
    std::memcpy(out, text, bytes);
  }
}

/// Formats records as lines. One for each drain.
class line_formatter {
 public:
  static constexpr log_role role_of(event_kind kind) noexcept {
    return kind == event_kind::operation || kind == event_kind::batch_preprocessed
               ? log_role::worker
               : log_role::main;
  }

  explicit line_formatter(const tick_converter& clock) noexcept : clock_{clock} {}

  /// Writes one line; returns its end. `out` has room for max_line_bytes.
  /// @param name  how the line begins, comma included, for an operation; else unused.
  LOTUS_DETAIL_ALWAYS_INLINE char* format(const record& r, std::string_view name,
                                          char* out) noexcept {
    tick_converter::span s = clock_.convert(r.begin_ticks, r.end_ticks);
    if (r.tag.kind() == event_kind::operation) {
      copy_short(out, name.data(), name.size());
      out += name.size();
    } else {
      const std::string_view prefix = batch_prefix(r.tag.kind());
      std::memcpy(out, prefix.data(), prefix.size());
      out = put_number(out + prefix.size(), r.tag.value());
      *out++ = ',';
      s.duration_ns = batch_duration_ns(r.tag.kind(), s.duration_ns);
    }
    out = put_start(out, static_cast<std::uint64_t>(s.start_ns < 0 ? 0 : s.start_ns));
    *out++ = ',';
    out = put_number(out, static_cast<std::uint64_t>(s.duration_ns < 0 ? 0 : s.duration_ns));
    *out++ = '\n';
    return out;
  }

 private:
  static constexpr std::string_view batch_prefix(event_kind kind) noexcept {
    switch (kind) {
      case event_kind::batch_preprocessed:
        return "SBatchPreprocessed_";
      case event_kind::batch_consumed:
        return "SBatchConsumed_";
      case event_kind::batch_queued:
        return "SBatchQueued_";
      default:
        return "SBatchWait_";
    }
  }

  /// A wait of 1000 ns would read as an out-of-order marker, so a real one is written as 1001.
  static constexpr std::int64_t batch_duration_ns(event_kind kind, std::int64_t measured) noexcept {
    if (kind == event_kind::batch_preprocessed) return measured;
    if (kind != event_kind::batch_wait) return placeholder_ns;
    return measured == placeholder_ns ? placeholder_ns + 1 : measured;
  }

  /// The seconds of one record are nearly always those of the one before.
  LOTUS_DETAIL_ALWAYS_INLINE char* put_start(char* out, std::uint64_t ns) noexcept {
    std::uint64_t fraction = ns - second_start_ns_;
    if (LOTUS_DETAIL_UNLIKELY(fraction >= 1'000'000'000)) {
      second_start_ns_ = ns / 1'000'000'000 * 1'000'000'000;
      fraction = ns - second_start_ns_;
      second_bytes_ =
          static_cast<std::size_t>(put_number(second_, second_start_ns_ / 1'000'000'000) - second_);
      if (ns < 1'000'000'000) second_bytes_ = 0;
    }
    if (LOTUS_DETAIL_UNLIKELY(second_bytes_ == 0)) return put_number(out, ns);
    std::memcpy(out, second_,
                16);  // always the same size: one move; what is too much is overwritten
    out += second_bytes_;
    const auto f = static_cast<std::uint32_t>(fraction);
    *out = static_cast<char>('0' + f / 100'000'000);
    const std::uint64_t digits = eight_digits(f % 100'000'000);
    std::memcpy(out + 1, &digits, 8);
    return out + 9;
  }

  const tick_converter& clock_;
  std::uint64_t second_start_ns_ = ~std::uint64_t{0} / 2;
  std::size_t second_bytes_ = 0;
  char second_[24] = {};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_LINE_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: all functions.
class session_clock {
 public:
  session_clock() noexcept : hardware_{hardware_ticks_invariant()} {}

  /// Whether ticks are those of the hardware counter, and not ns of CLOCK_MONOTONIC.
  bool hardware() const noexcept { return hardware_; }

  /// Takes 1 ms, which gives the rate to some 20 ppm; the first tie, 5 ms later, improves it.
  void begin() noexcept {
    const locked hold{lock_};
    const clock_anchor first = read_anchor();
    while (elapsed_ns() - first.elapsed_ns < 1'000'000) {
    }
    map_.begin(first, read_anchor());
    ties_.store(0, std::memory_order_relaxed);
    last_tie_ns_.store(first.elapsed_ns, std::memory_order_relaxed);
  }

  /// Ties the map to CLOCK_REALTIME again when that is due: early ones soon, for they give the
  /// rate.
  /// @param stored  called with the map, under the clock's lock, when it has changed.
  /// @return the step of the wall clock that this has found, in ns, or 0.
  template <class Stored>
  std::int64_t tie(Stored&& stored) noexcept {
    const std::int64_t due_ns = ties_.load(std::memory_order_relaxed) < 3 ? 5'000'000 : 90'000'000;
    const auto early = [&](std::int64_t now_ns) {
      return now_ns - last_tie_ns_.load(std::memory_order_relaxed) < due_ns;
    };
    if (early(elapsed_ns())) return 0;
    const locked hold{lock_};
    const clock_anchor now = read_anchor();
    if (early(now.elapsed_ns)) return 0;
    const std::int64_t stepped_ns = map_.tie(now);
    last_tie_ns_.store(now.elapsed_ns, std::memory_order_relaxed);
    ties_.fetch_add(1, std::memory_order_relaxed);
    stored(map_);
    return stepped_ns;
  }

  /// Calls `use(map)` with nobody changing it.
  template <class Use>
  void with_map(Use&& use) noexcept {
    const locked hold{lock_};
    use(map_);
  }

  tick_converter converter() noexcept { return {map_, &lock_}; }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  std::uint64_t ticks() const noexcept {
    return hardware_ ? hardware_ticks() : static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
  }

  /// While a machine sleeps its counter goes on, as CLOCK_BOOTTIME does; CLOCK_MONOTONIC stands.
  std::int64_t elapsed_ns() const noexcept {
    return clock_ns(hardware_ ? CLOCK_BOOTTIME : CLOCK_MONOTONIC);
  }

  /// The three clocks at one moment: the tightest of a few readings.
  clock_anchor read_anchor() const noexcept {
    clock_anchor best{};
    std::uint64_t tightest = ~std::uint64_t{0};
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t before = ticks();
      const std::int64_t realtime_ns = clock_ns(CLOCK_REALTIME);
      const std::uint64_t between = ticks();
      const std::int64_t elapsed = elapsed_ns();
      const std::uint64_t after = ticks();
      if (after - before >= tightest) continue;
      tightest = after - before;
      best = {before + (between - before) / 2, elapsed, realtime_ns};
    }
    return best;
  }

  const bool hardware_;
  mutex lock_;
  clock_map map_{};
  std::atomic<std::int64_t> last_tie_ns_{0};
  std::atomic<std::uint32_t> ties_{0};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SESSION_CLOCK_HPP

// Where a run's records go: rings, ring file and logs of one directory.
#ifndef LOTUS_STORAGE_HPP
#define LOTUS_STORAGE_HPP

// Records in memory while the disk does not take them.
#ifndef LOTUS_BACKLOG_HPP
#define LOTUS_BACKLOG_HPP

// One ring's complete records, as lines, to a sink.
#ifndef LOTUS_DRAIN_HPP
#define LOTUS_DRAIN_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Room for the text of one append.
struct drain_buffer {
  static constexpr std::size_t capacity = std::size_t{128} << 10;
  char text[log_roles][capacity];
  std::size_t bytes[log_roles];
};

/// How far each lane's records were complete at one moment.
struct lane_heads {
  std::uint64_t head[lanes];

  explicit lane_heads(const ring_block& ring) noexcept {
    for (std::size_t i = 0; i < lanes; ++i) {
      head[i] = ring.published[i].load(std::memory_order_acquire);
    }
  }
  /// How many records are complete and not in the logs.
  std::uint64_t beyond(const commit_point& c) const noexcept {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < lanes; ++i) count += head[i] - c.tail[i];
    return count;
  }
};

/// Writes the records between the ring's committed tails and `heads` to `sink`, which commits as it
/// goes: what was appended is never given again.
/// @param heads   read before `clock` was made.
/// @param names   std::string_view operator()(std::uint64_t id): how the line begins, comma
/// included.
/// @param sink    begin(role), append(role, text, bytes) -> errno, undo(role), commit(lane, tail).
/// @return 0, or the errno of the sink; then the rest of the records stays.
template <class Names, class Sink>
int drain_ring(ring_block& ring, const lane_heads& heads, const tick_converter& clock,
               const Names& names, Sink& sink, drain_buffer& buffer) noexcept {
  line_formatter formatter{clock};
  for (std::size_t lane = lanes; lane-- > 0;) {
    std::uint64_t at = ring.committed().tail[lane];
    while (at != heads.head[lane]) {
      buffer.bytes[0] = buffer.bytes[1] = 0;
      for (; at != heads.head[lane]; ++at) {
        const record r = ring.slot(lane, at);
        const auto role = static_cast<std::size_t>(line_formatter::role_of(r.tag.kind()));
        if (drain_buffer::capacity - buffer.bytes[role] < max_line_bytes) break;
        char* out = buffer.text[role] + buffer.bytes[role];
        const std::string_view name =
            r.tag.kind() == event_kind::operation ? names(r.tag.value()) : std::string_view{};
        buffer.bytes[role] =
            static_cast<std::size_t>(formatter.format(r, name, out) - buffer.text[role]);
      }
      for (std::size_t i = 0; i < log_roles; ++i) {
        if (buffer.bytes[i] == 0) continue;
        const auto role = static_cast<log_role>(i);
        int error = sink.begin(role);
        if (error == 0) error = sink.append(role, buffer.text[i], buffer.bytes[i]);
        if (error != 0) {
          for (std::size_t k = 0; k < i; ++k) sink.undo(static_cast<log_role>(k));
          return error;
        }
      }
      sink.commit(lane, at);
    }
  }
  return 0;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_DRAIN_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// A ring block that was full when the disk was, in private memory, waiting with what it held.
struct backlog_chunk {
  backlog_chunk* next;
  std::uint64_t bytes;  ///< of the mapping
  ring_block ring;      ///< last, since its records follow
};

/// Moves what `p`'s ring holds into memory and empties the ring. False when `used_bytes` would pass
/// `most_bytes` or there is no memory; then nothing has moved. Caller holds p.guard.
inline bool set_aside(producer& p, std::atomic<std::size_t>& used_bytes,
                      std::size_t most_bytes) noexcept {
  ring_block& ring = *p.ring;
  const std::size_t bytes = offsetof(backlog_chunk, ring) + ring_block::bytes_for(ring.capacity);
  if (used_bytes.load(std::memory_order_relaxed) + bytes > most_bytes) return false;
  auto* chunk = static_cast<backlog_chunk*>(map_memory(bytes));
  if (chunk == nullptr) return false;
  used_bytes.fetch_add(bytes, std::memory_order_relaxed);
  chunk->bytes = bytes;
  chunk->ring.capacity = ring.capacity;
  chunk->ring.tid.store(ring.tid.load(std::memory_order_relaxed), std::memory_order_relaxed);
  const lane_heads heads{ring};
  commit_point all = ring.committed();
  chunk->ring.commit(all);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    for (std::uint64_t at = all.tail[lane]; at != heads.head[lane]; ++at) {
      chunk->ring.slot(lane, at) = ring.slot(lane, at);
    }
    chunk->ring.published[lane].store(heads.head[lane], std::memory_order_relaxed);
    all.tail[lane] = heads.head[lane];
  }
  ring.commit(all);
  (p.backlog_last == nullptr ? p.backlog_first : p.backlog_last->next) = chunk;
  p.backlog_last = chunk;
  return true;
}

/// Drains a chunk through the logs of the ring it came from, whose commits survive a kill.
class backlog_sink {
 public:
  backlog_sink(ring_block& chunk, log_appender& logs) noexcept : chunk_{chunk}, logs_{logs} {}
  int begin(log_role role) noexcept { return logs_.begin(role); }
  int append(log_role role, const char* lines, std::size_t bytes) noexcept {
    return logs_.append(role, lines, bytes);
  }
  void undo(log_role role) noexcept { logs_.undo(role); }
  void commit(std::size_t lane, std::uint64_t tail) noexcept {
    commit_point c = chunk_.committed();
    c.tail[lane] = tail;
    chunk_.commit(c);
    logs_.commit_lines();
  }

 private:
  ring_block& chunk_;
  log_appender& logs_;
};

/// Frees the oldest chunk of `p`. Caller holds p.guard.
inline void drop_oldest(producer& p, std::atomic<std::size_t>& used_bytes) noexcept {
  backlog_chunk* chunk = p.backlog_first;
  p.backlog_first = chunk->next;
  if (p.backlog_first == nullptr) p.backlog_last = nullptr;
  used_bytes.fetch_sub(chunk->bytes, std::memory_order_relaxed);
  munmap(chunk, chunk->bytes);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BACKLOG_HPP

// Buffers for the threads that drain.
#ifndef LOTUS_DRAIN_BUFFERS_HPP
#define LOTUS_DRAIN_BUFFERS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Keeps a few for the next drain. Thread safety: all.
class drain_buffers {
 public:
  /// Null where there is no memory.
  drain_buffer* take() noexcept {
    const locked hold{lock_};
    if (spare_count_ > 0) return spare_[--spare_count_];
    return static_cast<drain_buffer*>(map_memory(sizeof(drain_buffer)));
  }

  void give_back(drain_buffer* buffer) noexcept {
    const locked hold{lock_};
    if (spare_count_ < max_spare) {
      spare_[spare_count_++] = buffer;
    } else {
      munmap(buffer, sizeof(drain_buffer));
    }
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::size_t max_spare = 4;

  mutex lock_;
  drain_buffer* spare_[max_spare] = {};
  std::size_t spare_count_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_DRAIN_BUFFERS_HPP

// What processes that died left in their ring files.
#ifndef LOTUS_RECOVER_HPP
#define LOTUS_RECOVER_HPP

#include <ctime>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The ring file of a dead process, locked against everyone else who may want to recover it.
/// Whatever is in the file is checked before it is believed: it may be damaged.
class dead_ring_file {
 public:
  enum class state {
    opened,
    gone,     ///< recovered and deleted by somebody else meanwhile, or not readable
    living,   ///< its process lives, or somebody recovers it at this moment
    damaged,  ///< not a ring file of this version
  };

  /// Opens `name` in `directory` (borrowed).
  /// @param writable  to append to the logs and delete it; otherwise only to read.
  state open(int directory, const char* name, bool writable) noexcept {
    fd_ = openat(directory, name, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd_ < 0) return state::gone;
    if (flock(fd_, (writable ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) return state::living;
    struct stat status {};
    if (fstat(fd_, &status) != 0 || status.st_nlink == 0) return state::gone;
    bytes_ = static_cast<std::size_t>(status.st_size);
    if (bytes_ < sizeof(ring_file_header)) return state::damaged;
    // Private when only read: the process's commits are worked on, the file stays as it is.
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, writable ? MAP_SHARED : MAP_PRIVATE, fd_, 0);
    if (memory == MAP_FAILED) return state::gone;
    memory_ = static_cast<char*>(memory);
    return usable() && index_names() ? state::opened : state::damaged;
  }

  dead_ring_file() noexcept = default;
  dead_ring_file(const dead_ring_file&) = delete;
  dead_ring_file& operator=(const dead_ring_file&) = delete;
  ~dead_ring_file() {
    if (names_ != nullptr) munmap(names_, names_bytes_);
    if (memory_ != nullptr) munmap(memory_, bytes_);
    if (fd_ >= 0) close(fd_);
  }

  const ring_file_header& header() const noexcept {
    return *reinterpret_cast<const ring_file_header*>(memory_);
  }

  /// Calls `each(ring_block&)` for every ring that makes sense.
  template <class Each>
  void for_each_ring(Each&& each) noexcept {
    for_each_block([&](block_header& block) {
      if (block.kind.load(std::memory_order_relaxed) != block_kind::ring) return;
      auto& ring = reinterpret_cast<ring_block&>(block);
      if (block.bytes < sizeof(ring_block) || !sound(ring)) return;
      each(ring);
    });
  }

  /// The clock to convert the records with.
  tick_converter clock() const noexcept {
    return tick_converter{header().clocks[header().clock_index.load(std::memory_order_relaxed)],
                          nullptr};
  }

  /// How a line begins that has the name `id`.
  std::string_view line_start(std::uint64_t id) const noexcept {
    if (id == 0 || id > name_count_ || names_[id - 1].data() == nullptr) return "Sname_lost,";
    return names_[id - 1];
  }

 private:
  bool usable() const noexcept {
    const ring_file_header& h = header();
    const std::uint32_t index = h.clock_index.load(std::memory_order_relaxed);
    return std::memcmp(h.magic, ring_file_magic, sizeof(h.magic)) == 0 &&
           h.layout == ring_file_layout && h.header_bytes >= sizeof(ring_file_header) &&
           h.header_bytes <= bytes_ && h.header_bytes % least_page_bytes == 0 &&
           std::memchr(h.prefix, '\0', sizeof(h.prefix)) != nullptr &&
           std::strchr(h.prefix, '/') == nullptr && index <= 1 && h.clocks[index].valid();
  }

  static bool sound(ring_block& ring) noexcept {
    const std::size_t capacity = ring.capacity;
    if (capacity == 0 || (capacity & (capacity - 1)) != 0) return false;
    if (ring_block::bytes_for(capacity) > ring.header.bytes) return false;
    if (ring.commit_index.load(std::memory_order_relaxed) > 1) return false;
    const commit_point& c = ring.committed();
    return ring.published[0].load(std::memory_order_relaxed) - c.tail[0] <= capacity &&
           ring.published[1].load(std::memory_order_relaxed) - c.tail[1] <= interrupt_lane_records;
  }

  template <class Each>
  void for_each_block(Each&& each) noexcept {
    std::size_t at = header().header_bytes;
    while (bytes_ - at >= least_page_bytes) {
      auto& block = *reinterpret_cast<block_header*>(memory_ + at);
      if (block.kind.load(std::memory_order_relaxed) == block_kind::none) return;
      if (block.bytes < sizeof(block_header) || block.bytes > bytes_ - at ||
          block.bytes % least_page_bytes != 0) {
        return;
      }
      each(block);
      at += block.bytes;
    }
  }

  template <class Each>
  void for_each_name(Each&& each) noexcept {
    for_each_block([&](block_header& block) {
      if (block.kind.load(std::memory_order_relaxed) != block_kind::names) return;
      auto& names = reinterpret_cast<names_block&>(block);
      if (block.bytes < sizeof(names_block)) return;
      const std::size_t room = block.bytes - sizeof(names_block);
      const std::size_t used = names.used_bytes.load(std::memory_order_relaxed);
      std::size_t at = 0;
      while (used <= room && used - at >= sizeof(stored_name)) {
        stored_name head{};
        std::memcpy(&head, names.entries() + at, sizeof(head));
        if (head.bytes > used - at - sizeof(head) || head.bytes > max_line_name_bytes + 1) return;
        each(head.id, std::string_view{names.entries() + at + sizeof(head), head.bytes});
        at += padded_name_bytes(head.bytes);
        if (at > used) return;
      }
    });
  }

  bool index_names() noexcept {
    for_each_name([&](std::uint32_t, std::string_view) { ++name_count_; });
    if (name_count_ == 0) return true;
    names_bytes_ = name_count_ * sizeof(std::string_view);
    void* memory = map_memory(names_bytes_);
    if (memory == nullptr) return false;
    names_ = static_cast<std::string_view*>(memory);
    for_each_name([&](std::uint32_t id, std::string_view text) {
      if (id >= 1 && id <= name_count_) names_[id - 1] = text;
    });
    return true;
  }

  int fd_ = -1;
  char* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::string_view* names_ = nullptr;  ///< by id - 1
  std::size_t names_bytes_ = 0;
  std::uint64_t name_count_ = 0;
};

struct recovery {
  std::uint64_t files = 0;    ///< dead ring files that were read to their end
  std::uint64_t records = 0;  ///< lines appended to the logs
  std::uint64_t living = 0;   ///< ring files left alone because their processes live
  std::uint64_t damaged = 0;  ///< ring files that could not be read
  int error = 0;              ///< errno of the first thing that failed, or 0
};

/// Appends to the logs what the rings of one dead process still hold, then deletes the ring file.
/// May be killed at any instant and run again: the commits in the file say how far it came.
inline void recover_file(int directory, const char* name, dead_ring_file& file, recovery& result,
                         drain_buffer& buffer) noexcept {
  int error = 0;
  file.for_each_ring([&](ring_block& ring) {
    open_logs opened;
    log_appender logs{directory, file.header().prefix, ring, opened};
    logs.undo_torn();
    const lane_heads heads{ring};
    const std::uint64_t before = heads.beyond(ring.committed());
    const auto names = [&](std::uint64_t id) { return file.line_start(id); };
    const int failed = drain_ring(ring, heads, file.clock(), names, logs, buffer);
    result.records += before - heads.beyond(ring.committed());
    if (failed != 0) error = failed;
    opened.close_all();
  });
  if (error == 0) {
    unlinkat(directory, name, 0);
    ++result.files;
  } else if (result.error == 0) {
    result.error = error;
  }
}

/// Deletes a ring file whose process died while making it, a minute ago or more: it holds nothing.
inline void delete_if_unfinished(int directory, const char* name) noexcept {
  const int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  struct stat status {};
  const bool abandoned = flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &status) == 0 &&
                         time(nullptr) - status.st_mtime > 60;
  if (abandoned) unlinkat(directory, name, 0);
  close(fd);
}

/// Recovers every dead ring file in `directory` (borrowed).
/// @param prefix  only those of runs with this prefix; null: all.
inline recovery recover_directory(int directory, const char* prefix) noexcept {
  recovery result;
  drain_buffer* buffer = nullptr;
  for_each_entry(directory, [&](const char* name) {
    if (std::strncmp(name, unfinished_ring_file_start, sizeof(unfinished_ring_file_start) - 1) ==
        0) {
      return delete_if_unfinished(directory, name);
    }
    if (std::strncmp(name, ring_file_start, sizeof(ring_file_start) - 1) != 0) return;
    dead_ring_file file;
    const dead_ring_file::state state = file.open(directory, name, true);
    if (state == dead_ring_file::state::living) ++result.living;
    if (state == dead_ring_file::state::damaged) ++result.damaged;
    if (state != dead_ring_file::state::opened) return;
    if (prefix != nullptr && std::strcmp(prefix, file.header().prefix) != 0) return;
    if (buffer == nullptr) buffer = static_cast<drain_buffer*>(map_memory(sizeof(drain_buffer)));
    if (buffer != nullptr) recover_file(directory, name, file, result, *buffer);
  });
  if (buffer != nullptr) munmap(buffer, sizeof(drain_buffer));
  return result;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECOVER_HPP

// One small file for each process of a run: who recorded, where, and how much.
#ifndef LOTUS_RUN_INFO_HPP
#define LOTUS_RUN_INFO_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr char run_info_start[] = ".lotus_info_";

/// Appends lines "<key> <values>", of which the last of a kind counts:
///   lotus 0.1.0 / host <name> / pid <n> / parent <n> / rank <n>
///   clock <ticks> <ns since the epoch> <ns per tick * 2^32>
///   thread <tid> <name> / records <written> <dropped>
/// Names are written as in logs, behind an S. What cannot be written is left out: nothing depends
/// on it. Thread safety: none; the session locks. Trivially destructible.
class run_info {
 public:
  /// @param directory  borrowed, must stay open.
  void create(int directory, const clock_segment& clock) noexcept {
    directory_ = directory;
    const auto pid = static_cast<unsigned>(getpid());
    std::snprintf(file_, sizeof(file_), "%s%u_%llx", run_info_start, pid,
                  static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME)));
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    line host_name{host};
    char text[1024];
    const int n = std::snprintf(text, sizeof(text), "lotus %s\nhost %s\npid %u\nparent %u\n",
                                LOTUS_DETAIL_VERSION_STRING, host_name.text, pid,
                                static_cast<unsigned>(getppid()));
    append(text, n);
    add_rank();
    add_clock(clock);
  }

  /// @param tid  this thread, or one that lives.
  void add_thread(std::uint32_t tid) noexcept {
    char path[64];
    char name[64] = {};
    std::snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t got = read(fd, name, sizeof(name) - 1);
    close(fd);
    if (got > 0 && name[got - 1] == '\n') name[got - 1] = '\0';
    const line safe{name};
    char text[256];
    append(text, std::snprintf(text, sizeof(text), "thread %u %s\n", tid, safe.text));
  }

  void add_clock(const clock_segment& clock) noexcept {
    char text[128];
    append(text, std::snprintf(text, sizeof(text), "clock %llu %lld %llu\n",
                               static_cast<unsigned long long>(clock.start_ticks),
                               static_cast<long long>(clock.start_ns),
                               static_cast<unsigned long long>(clock.rate)));
  }

  void add_records(std::uint64_t written, std::uint64_t dropped) noexcept {
    char text[128];
    append(text, std::snprintf(text, sizeof(text), "records %llu %llu\n",
                               static_cast<unsigned long long>(written),
                               static_cast<unsigned long long>(dropped)));
  }

 private:
  /// A name that stays on its line.
  struct line {
    char text[3 * 256 + 2];
    explicit line(const char* name) noexcept {
      text[write_line_name(std::string_view{name}.substr(0, 255), text)] = '\0';
    }
  };

  void add_rank() noexcept {
    for (const char* variable : {"LOTUS_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
      const char* value = getenv(variable);
      if (value == nullptr || *value == '\0') continue;
      char* end = nullptr;
      const unsigned long rank = strtoul(value, &end, 10);
      if (*end != '\0') continue;
      char text[64];
      return append(text, std::snprintf(text, sizeof(text), "rank %lu\n", rank));
    }
  }

  void append(const char* text, int bytes) noexcept {
    const int fd = openat(directory_, file_, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return;
    write_all(fd, text, static_cast<std::size_t>(bytes));
    close(fd);
  }

  int directory_ = -1;
  char file_[64] = {};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RUN_INFO_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: open, close and after_fork_in_child under the session's control lock; all else
/// any thread, with the guard of the producer it is about.
class LOTUS_DETAIL_PER_MODULE storage {
 public:
  storage(messenger& messages, session_clock& clock, name_table& names) noexcept
      : messages_{messages}, clock_{clock}, names_{names} {}

  const log_location& location() const noexcept { return location_; }

  /// Finds or makes the directory. Returns 0 or errno, after saying why once.
  int open(const options& chosen) noexcept {
    const int error = location_.parse(chosen.log_file);
    const int opened = error == 0 ? location_.open_directory() : -error;
    if (opened < 0) {
      if (!said_unwritable_) {
        messages_.say("cannot write %s_*: %s; this run is not recorded", chosen.log_file.c_str(),
                      std::strerror(-opened));
      }
      said_unwritable_ = true;
      return -opened;
    }
    directory_ = opened;
    backlog_most_bytes_ = chosen.backlog_bytes;
    ring_records_ = 64;
    while (ring_records_ < chosen.ring_records && ring_records_ < (1U << 24)) ring_records_ *= 2;
    said_unwritable_ = said_no_file_ = false;
    said_disk_error_.store(false, std::memory_order_relaxed);
    report_existing_logs();
    const locked hold{file_lock_};
    make_ring_file();
    return 0;
  }

  /// Closes the ring file and completes the run's information.
  /// @param keep     leave the ring file on disk: it holds what is not in the logs.
  /// @param dropped  records lost since open().
  void close_files(bool keep, std::uint64_t dropped) noexcept {
    const locked hold{file_lock_};
    clock_.with_map([&](const clock_map& map) { info_.add_clock(map.current()); });
    info_.add_records(written_.load(std::memory_order_relaxed), dropped);
    file_.finish(keep);
    names_stored_.store(~std::uint32_t{0}, std::memory_order_release);
  }

  void close() noexcept {
    ::close(directory_);
    directory_ = -1;
  }

  /// Whether a name can be found after a kill. It must be before any record has it.
  bool keeps_name(std::uint32_t id) const noexcept { return id <= names_stored_.load(); }
  void keep_names() noexcept {
    const locked hold{file_lock_};
    store_names();
  }

  /// Gives the producer a ring of this run. False where there is no memory.
  bool attach(producer& p) noexcept {
    const locked hold{file_lock_};
    if (p.ring != nullptr) ring_file::unmap(p.ring);
    p.ring = nullptr;
    if (ring_file_due_) make_ring_file();
    int error = 0;
    ring_block* ring = file_.add_ring(p.tid.load(std::memory_order_relaxed), ring_records_, error);
    if (ring == nullptr) return false;
    p.ring_in_file = error == 0;
    if (!p.ring_in_file && file_.exists()) say_no_file(error);
    info_.add_thread(p.tid.load(std::memory_order_relaxed));
    p.ring = ring;
    p.attached = true;
    p.slots = ring->slots();
    p.mask = ring->capacity - 1;
    p.published = &ring->published[0];
    return true;
  }

  /// Takes the ring out of use; it stays mapped until the next attach, as its thread may be storing
  /// a record at this moment. What could not be written is given up.
  /// @return how many records that were in memory only are lost.
  std::uint64_t detach(producer& p) noexcept {
    const bool survives = p.ring == nullptr || p.ring_in_file;
    std::uint64_t lost = survives ? 0 : lane_heads{*p.ring}.beyond(p.ring->committed());
    while (p.backlog_first != nullptr) {
      lost += lane_heads{p.backlog_first->ring}.beyond(p.backlog_first->ring.committed());
      drop_oldest(p, backlog_bytes_);
    }
    close_logs(p);
    p.attached = false;
    return lost;
  }

  /// Makes a drained producer's ring that of another thread.
  void hand_over(producer& p) noexcept {
    close_logs(p);
    if (!p.attached) return;
    p.ring->tid.store(p.tid.load(std::memory_order_relaxed), std::memory_order_relaxed);
    commit_point c = p.ring->committed();
    for (log_position& log : c.logs) log = {};
    p.ring->commit(c);
    const locked hold{file_lock_};
    info_.add_thread(p.tid.load(std::memory_order_relaxed));
  }

  /// In a forked child: rings, what is in them, and the ring file are the parent's.
  void after_fork_in_child(producer& p) noexcept {
    // Where a handler forks that interrupted a scope, that one will go on with the ring.
    const bool in_use = p.storing.load(std::memory_order_relaxed) != 0;
    if (p.ring != nullptr) in_use ? ring_file::replace(p.ring) : ring_file::unmap(p.ring);
    p.ring = nullptr;
    p.published = &p.none_published;
    detach(p);
  }
  void after_fork_in_child() noexcept {
    file_.forget();
    info_ = run_info{};
    written_.store(0, std::memory_order_relaxed);
    ring_file_due_ = true;
    names_stored_.store(~std::uint32_t{0}, std::memory_order_relaxed);
  }

  /// Writes all complete records of `p` to its logs. Returns 0 or errno; then what could not be
  /// written stays.
  int drain(producer& p) noexcept {
    ring_block& ring = *p.ring;
    const lane_heads heads{ring};
    const std::uint64_t complete = heads.beyond(ring.committed());
    if (complete == 0 && p.backlog_first == nullptr) return 0;
    drain_buffer* buffer = buffers_.take();
    if (buffer == nullptr) return ENOMEM;
    tie_clock();
    const tick_converter clock = clock_.converter();
    const auto names = [&](std::uint64_t id) {
      return names_.entry(static_cast<std::uint32_t>(id)).line_start();
    };
    log_appender logs{directory_, location_.prefix, ring, p.logs};
    int error = 0;
    while (error == 0 && p.backlog_first != nullptr) {
      ring_block& chunk = p.backlog_first->ring;
      backlog_sink sink{chunk, logs};
      const std::uint64_t aside = lane_heads{chunk}.beyond(chunk.committed());
      error = drain_ring(chunk, lane_heads{chunk}, clock, names, sink, *buffer);
      count_written(aside - lane_heads{chunk}.beyond(chunk.committed()));
      if (error == 0) drop_oldest(p, backlog_bytes_);
    }
    if (error == 0) error = drain_ring(ring, heads, clock, names, logs, *buffer);
    count_written(complete - heads.beyond(ring.committed()));
    buffers_.give_back(buffer);
    keep_or_close_logs(p);
    report_disk(error);
    return error;
  }

  /// Empties a ring that cannot be drained into memory. False where that is used up.
  bool set_aside(producer& p) noexcept {
    return detail::set_aside(p, backlog_bytes_, backlog_most_bytes_);
  }

  mutex& file_fork_lock() noexcept { return file_lock_; }
  mutex& buffers_fork_lock() noexcept { return buffers_.fork_lock(); }

 private:
  void report_existing_logs() noexcept {
    unsigned count = 0;
    for_each_entry(directory_, [&](const char* name) {
      if (is_log_name(name, location_.prefix)) ++count;
    });
    if (count > 0) {
      messages_.say("%u logs of %s/%s_* exist already; this run's lines are added to them", count,
                    location_.directory, location_.prefix);
    }
  }

  /// Makes the ring file, after what dead processes left has been put into the logs: this one may
  /// have a process or thread id of theirs. Caller holds file_lock_.
  void make_ring_file() noexcept {
    const recovery recovered = recover_directory(directory_, location_.prefix);
    if (recovered.records > 0) {
      messages_.say("%llu records of processes that died were recovered in %s",
                    static_cast<unsigned long long>(recovered.records), location_.directory);
    }
    ring_file_due_ = false;
    int error = 0;
    written_.store(0, std::memory_order_relaxed);
    clock_.with_map([&](const clock_map& map) {
      info_.create(directory_, map.current());
      error = file_.create(directory_, location_.prefix, !clock_.hardware(), map);
    });
    if (error != 0) return say_no_file(error);
    store_names();
  }

  void say_no_file(int error) noexcept {
    if (!said_no_file_) {
      messages_.say("no ring file in %s: %s; a kill would lose what is not yet in the logs",
                    location_.directory, std::strerror(error));
    }
    said_no_file_ = true;
  }

  /// Caller holds file_lock_.
  void store_names() noexcept {
    // A name that is added from here on finds itself not stored, and waits for file_lock_; one that
    // was added before is in the table.
    if (file_.exists()) names_stored_.store(file_.names_stored());
    file_.store_names(names_);
    names_stored_.store(file_.exists() ? file_.names_stored() : ~std::uint32_t{0});
  }

  void tie_clock() noexcept {
    const locked hold{file_lock_};
    const std::int64_t stepped_ns =
        clock_.tie([&](const clock_map& map) { file_.store_clock(map); });
    if (stepped_ns == 0) return;
    messages_.say("the wall clock was stepped by %.3f s; %s",
                  static_cast<double>(stepped_ns) * 1e-9,
                  stepped_ns > 0 ? "times go on from the new one"
                                 : "times go on as before, so that they stay in order");
  }

  void count_written(std::uint64_t records) noexcept {
    written_.fetch_add(records, std::memory_order_relaxed);
  }

  void report_disk(int error) noexcept {
    const bool failed = error != 0;
    if (said_disk_error_.load(std::memory_order_relaxed) == failed) return;
    if (said_disk_error_.exchange(failed) == failed) return;
    if (failed) {
      messages_.say("cannot append to the logs in %s: %s; records are kept in memory meanwhile",
                    location_.directory, std::strerror(error));
    } else {
      messages_.say("the logs in %s can be written again", location_.directory);
    }
  }

  /// Opening for each drain would cost a file system more than the writing; but descriptors are the
  /// program's, so only some threads' logs stay open.
  void keep_or_close_logs(producer& p) noexcept {
    if (p.logs_kept_open) return;
    p.logs_kept_open = kept_open_.fetch_add(1, std::memory_order_relaxed) < max_kept_open;
    if (p.logs_kept_open) return;
    kept_open_.fetch_sub(1, std::memory_order_relaxed);
    p.logs.close_all();
  }

  void close_logs(producer& p) noexcept {
    p.logs.close_all();
    if (p.logs_kept_open) kept_open_.fetch_sub(1, std::memory_order_relaxed);
    p.logs_kept_open = false;
  }

  static constexpr std::uint32_t max_kept_open = 64;  ///< threads, of two logs each

  messenger& messages_;
  session_clock& clock_;
  name_table& names_;
  log_location location_{};
  int directory_ = -1;
  std::uint32_t ring_records_ = 0;
  bool said_unwritable_ = false;
  bool said_no_file_ = false;
  std::atomic<bool> said_disk_error_{false};

  mutex file_lock_;
  ring_file file_;
  run_info info_;
  std::atomic<std::uint64_t> written_{0};
  bool ring_file_due_ = false;
  std::atomic<std::uint32_t> names_stored_{~std::uint32_t{0}};
  std::atomic<std::uint32_t> kept_open_{0};

  std::atomic<std::size_t> backlog_bytes_{0};
  std::size_t backlog_most_bytes_ = 0;
  drain_buffers buffers_;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORAGE_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Every entry blocks signals itself, but for those that the session calls one at a time, with
/// signals blocked: open, close, close_at_exit and the three of a fork.
///
/// Locks, outermost first: the list of producers, a producer's guard, the ring file, the clock;
/// names and buffers are leaves.
class LOTUS_DETAIL_PER_MODULE recorder {
 public:
  bool is_on() const noexcept { return recording_.load(std::memory_order_acquire); }
  bool hardware_clock() const noexcept { return clock_.hardware(); }
  const log_location& location() const noexcept { return storage_.location(); }
  const name_entry& name(std::uint32_t id) const noexcept { return names_.entry(id); }
  messenger& messages() noexcept { return messages_; }

  /// False, after saying why, when the directory cannot be written.
  bool open(const options& chosen) noexcept {
    messages_.use(chosen.on_message);
    clock_.begin();
    if (storage_.open(chosen) != 0) return false;
    when_full_.store(chosen.when_full, std::memory_order_relaxed);
    drain_interval_ms_.store(chosen.drain_interval_ms > 0 ? chosen.drain_interval_ms : 1,
                             std::memory_order_relaxed);
    pause_ms_.store(5, std::memory_order_relaxed);
    dropped_at_start_ = dropped();
    write_through_.store(false, std::memory_order_relaxed);
    recording_.store(true, std::memory_order_release);
    drain_thread_.wake();
    return true;
  }

  void close() noexcept {
    recording_.store(false, std::memory_order_release);
    bool left_over = false;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      if (!p.attached) return;
      if (drain(p) != 0) left_over = true;
      dropped_before_.fetch_add(storage_.detach(p), std::memory_order_relaxed);
    });
    storage_.close_files(left_over, dropped() - dropped_at_start_);
    storage_.close();
    report_dropped();
  }

  /// The process exits: from now on each record goes into its log at once, for nobody drains later.
  void close_at_exit() noexcept {
    if (!is_on()) return;
    write_through_.store(true, std::memory_order_relaxed);
    bool keep = false;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      if (!p.attached) return;
      if (drain(p) != 0) keep = true;
      open_lanes(p);
      // A thread that still runs may be storing a record: that one can be recovered.
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      if (tid != 0 && tid != thread_id() && !thread_is_dead(tid)) keep = true;
    });
    storage_.close_files(keep, dropped() - dropped_at_start_);
    report_dropped();
  }

  void flush() noexcept {
    const signals_blocked quiet;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      if (p.attached) drain(p);
    });
  }

  std::uint64_t dropped() const noexcept {
    std::uint64_t sum = dropped_before_.load(std::memory_order_relaxed);
    producers_.for_each([&](producer& p) { sum += p.dropped.load(std::memory_order_relaxed); });
    return sum;
  }

  std::uint32_t intern(std::string_view name) noexcept {
    if (this_thread_forks) return 0;
    const std::uint32_t id = names_.intern(name);
    if (!storage_.keeps_name(id)) {
      const signals_blocked quiet;
      storage_.keep_names();
    }
    return id;
  }

  producer* this_thread() noexcept {
    if (this_thread_forks) return nullptr;
    const signals_blocked quiet;
    return producers_.for_this_thread(
        [&](producer& p) {
          const locked guard{p.guard};
          return !p.attached || (drain(p) == 0 && p.backlog_first == nullptr);
        },
        [&](producer& p) {
          const locked guard{p.guard};
          p.storing.store(0, std::memory_order_relaxed);
          dropped_before_.fetch_add(p.dropped.exchange(0, std::memory_order_relaxed),
                                    std::memory_order_relaxed);
          storage_.hand_over(p);
        });
  }

  void push_slow(producer& p, const record& r) noexcept {
    if (this_thread_forks) return drop(p);
    // A limit other than 0 means a ring that is merely full.
    const bool full = p.limit.load(std::memory_order_relaxed) != 0;
    if (full && drops_when_full()) return drop(p);
    const signals_blocked quiet;
    const locked guard{p.guard};
    if (!is_on()) return;
    if (!p.attached && !attach(p)) return drop(p);
    ring_block& ring = *p.ring;
    const std::uint64_t at = ring.published[0].load(std::memory_order_relaxed);
    if (at - ring.committed().tail[0] >= ring.capacity && !make_room(p)) return drop(p);
    ring.slot(0, at) = r;
    ring.published[0].store(at + 1, std::memory_order_release);
    if (write_through_.load(std::memory_order_relaxed)) drain(p);
  }

  /// From a signal handler that interrupted this thread while it was storing a record. A handler
  /// within a handler within these few instructions is dropped and counted.
  void push_nested(producer& p, const record& r) const noexcept {
    // Without a ring, before a thread's first record or where recording is off, there is no room.
    if (p.interrupt_limit.load(std::memory_order_acquire) == 0) {
      if (is_on()) drop(p);
      return;
    }
    if (p.storing.load(std::memory_order_relaxed) != 1) return drop(p);
    p.storing.store(2, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ring_block& ring = *p.ring;
    const std::uint64_t at = ring.published[1].load(std::memory_order_relaxed);
    if (at < p.interrupt_limit.load(std::memory_order_acquire)) {
      ring.slot(1, at) = r;
      ring.published[1].store(at + 1, std::memory_order_release);
    } else {
      drop(p);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    p.storing.store(1, std::memory_order_relaxed);
  }

  // --- fork: parent and child each go on with a whole recorder

  void before_fork() noexcept {
    forking_tid_ = thread_id();
    producers_.fork_lock().lock();
    producers_.for_each([](producer& p) { p.guard.lock(); });
    storage_.file_fork_lock().lock();
    clock_.fork_lock().lock();
    names_.fork_lock().lock();
    storage_.buffers_fork_lock().lock();
    producers_.for_each([&](producer& p) {
      if (p.tid.load(std::memory_order_relaxed) != forking_tid_) return;
      p.limit.store(0, std::memory_order_relaxed);
      p.interrupt_limit.store(0, std::memory_order_relaxed);
    });
  }

  void after_fork() noexcept {
    producers_.for_each([&](producer& p) {
      if (p.attached && p.tid.load(std::memory_order_relaxed) == forking_tid_) open_lanes(p);
    });
    storage_.buffers_fork_lock().unlock();
    names_.fork_lock().unlock();
    clock_.fork_lock().unlock();
    storage_.file_fork_lock().unlock();
    producers_.for_each([](producer& p) { p.guard.unlock(); });
    producers_.fork_lock().unlock();
  }

  /// Before after_fork().
  void become_child() noexcept {
    producers_.for_each([&](producer& p) {
      storage_.after_fork_in_child(p);
      p.limit.store(0, std::memory_order_relaxed);
      p.interrupt_limit.store(0, std::memory_order_relaxed);
      p.dropped.store(0, std::memory_order_relaxed);
      const bool forked = p.tid.load(std::memory_order_relaxed) == forking_tid_;
      p.tid.store(forked ? thread_id() : 0, std::memory_order_relaxed);
    });
    storage_.after_fork_in_child();
    dropped_before_.store(0, std::memory_order_relaxed);
    dropped_at_start_ = 0;
    drain_thread_.forget();
  }

 private:
  void report_dropped() noexcept {
    const std::uint64_t lost = dropped() - dropped_at_start_;
    if (lost > 0) messages_.say("%llu records were dropped", static_cast<unsigned long long>(lost));
  }

  // --- producers; caller holds the guard

  bool drops_when_full() const noexcept {
    return when_full_.load(std::memory_order_relaxed) == full_ring::drop;
  }

  static void drop(producer& p) noexcept { p.dropped.fetch_add(1, std::memory_order_relaxed); }

  bool attach(producer& p) noexcept {
    if (!storage_.attach(p)) return false;
    open_lanes(p);
    if (!drain_thread_.runs()) drain_thread_.wake();
    return true;
  }

  /// Lets the owner store up to where the committed records leave room.
  void open_lanes(producer& p) const noexcept {
    const commit_point& c = p.ring->committed();
    const bool open = is_on() && !write_through_.load(std::memory_order_relaxed);
    p.interrupt_limit.store(is_on() ? c.tail[1] + interrupt_lane_records : 0,
                            std::memory_order_release);
    p.limit.store(open ? c.tail[0] + p.ring->capacity : 0, std::memory_order_release);
  }

  int drain(producer& p) noexcept {
    const int error = storage_.drain(p);
    open_lanes(p);
    return error;
  }

  /// Room in a full ring.
  bool make_room(producer& p) noexcept {
    if (drops_when_full()) return false;
    p.drained_itself.store(true, std::memory_order_relaxed);
    if (drain(p) == 0) return true;
    if (!storage_.set_aside(p)) return false;
    open_lanes(p);
    return true;
  }

  std::uint32_t drain_round() noexcept {
    if (!is_on()) return 0;
    producers_.for_each([&](producer& p) {
      // A thread that fills its ring between two rounds drains it itself, with the records still in
      // its cache: to come between would only make it wait.
      if (p.drained_itself.exchange(false, std::memory_order_relaxed)) return;
      const locked guard{p.guard};
      if (p.attached) drain(p);
    });
    // 5, 20, 80 ms: the clock's rate wants early ties. Then as the program chose.
    const std::uint32_t early_ms = pause_ms_.load(std::memory_order_relaxed);
    const std::uint32_t most_ms = drain_interval_ms_.load(std::memory_order_relaxed);
    const std::uint32_t pause_ms = early_ms < 100 && early_ms < most_ms ? early_ms : most_ms;
    pause_ms_.store(early_ms < 100 ? early_ms * 4 : early_ms, std::memory_order_relaxed);
    return pause_ms;
  }

  std::atomic<bool> recording_{false};
  std::atomic<bool> write_through_{false};
  std::atomic<full_ring> when_full_{full_ring::drain};
  std::atomic<std::uint32_t> drain_interval_ms_{0};
  std::atomic<std::uint32_t> pause_ms_{0};
  std::atomic<std::uint64_t> dropped_before_{0};  ///< by producers that are others now
  std::uint64_t dropped_at_start_ = 0;

  messenger messages_;
  session_clock clock_;
  name_table names_;
  producer_list producers_;
  storage storage_{messages_, clock_, names_};
  drain_thread drain_thread_{
      [](void* self) noexcept { return static_cast<recorder*>(self)->drain_round(); }, this};
  std::uint32_t forking_tid_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORDER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Made at first use, never destroyed. Its control lock is taken before any of the recorder's; the
/// list of shared objects is a leaf.
class LOTUS_DETAIL_PER_MODULE session {
 public:
  static session& instance() noexcept { return *instance_; }
  static const services* make() noexcept;

  recorder& records() noexcept { return recorder_; }

  void join(module_state& m, bool environment_counts) noexcept {
    choose_annotation();  // may load a library: before any lock
    const signals_blocked quiet;
    // Outside of every lock too: the loader, which it asks, may be running a static constructor
    // that records.
    if (!pinned_.exchange(true)) pin_module_of(&instance_);
    if (this_thread_forks) return;  // the next scope joins
    const locked control{control_};
    if (environment_counts && !environment_read_) start_as_environment_says();
    modules_.tell(m, table_, recorder_.hardware_clock(), mode());
    // Others may have come while the library was being loaded.
    if (annotation_wanted()) modules_.set_mode(mode());
  }

  void leave(module_state& m) noexcept {
    const signals_blocked quiet;
    if (&m != &this_module) return modules_.remove(m);
    // That of the object with this code is destroyed when the process exits, for it is pinned.
    const locked control{control_};
    recorder_.close_at_exit();
  }

  bool start(const options& chosen) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    if (recorder_.is_on() && !started_by_environment_) return already_recording(chosen);
    end();
    started_by_environment_ = false;
    return begin(chosen);
  }

  void stop() noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    end();
  }

  void begin_task_of(record_tag tag) const noexcept {
    switch (tag.kind()) {
      case event_kind::operation:
        return begin_task(recorder_.name(static_cast<std::uint32_t>(tag.value())).raw());
      case event_kind::batch_wait:
        return begin_task("BatchWait");
      default:
        return begin_task("BatchPreprocessed");
    }
  }

 private:
  recording mode() const noexcept {
    if (annotation_wanted()) return recording::annotated;
    return recorder_.is_on() ? recording::on : recording::off;
  }

  // --- caller holds control_

  void start_as_environment_says() noexcept {
    environment_read_ = true;
    const char* log_file = secure_getenv("LOTUS_LOG_FILE");
    if (log_file == nullptr || *log_file == '\0') return;
    options chosen;
    chosen.log_file = log_file;
    started_by_environment_ = begin(chosen);
  }

  bool already_recording(const options& chosen) noexcept {
    log_location asked;
    const log_location& now = recorder_.location();
    if (asked.parse(chosen.log_file) == 0 && std::strcmp(asked.directory, now.directory) == 0 &&
        std::strcmp(asked.prefix, now.prefix) == 0) {
      return true;
    }
    recorder_.messages().say(
        "already recording to %s/%s_*; call lotus::stop() before another lotus::start()",
        now.directory, now.prefix);
    return false;
  }

  bool begin(const options& chosen) noexcept {
    if (!recorder_.open(chosen)) return false;
    modules_.set_mode(mode());
    return true;
  }

  void end() noexcept {
    if (!recorder_.is_on()) return;
    recorder_.close();
    modules_.set_mode(mode());
  }

  // --- fork: parent and child each go on with a whole session

  static void before_fork() noexcept {
    session& s = instance();
    s.control_.lock();
    s.recorder_.before_fork();
    s.modules_.fork_lock().lock();
  }

  static void after_fork_in_parent() noexcept { instance().unlock_after_fork(); }

  static void after_fork_in_child() noexcept {
    instance().recorder_.become_child();
    instance().unlock_after_fork();
  }

  void unlock_after_fork() noexcept {
    modules_.fork_lock().unlock();
    recorder_.after_fork();
    control_.unlock();
  }

  static session* instance_;
  static const services table_;

  mutex control_;
  std::atomic<bool> pinned_{false};
  bool environment_read_ = false;
  bool started_by_environment_ = false;
  module_list modules_;
  recorder recorder_;
};

inline session* session::instance_ = nullptr;

inline const services session::table_ = {
    []() noexcept { return instance().records().this_thread(); },
    [](producer& p, const record& r) noexcept { instance().records().push_slow(p, r); },
    [](producer& p, const record& r) noexcept { instance().records().push_nested(p, r); },
    [](std::string_view name) noexcept { return instance().records().intern(name); },
    [](const start_request& asked) noexcept {
      options chosen;
      chosen.log_file.assign(asked.log_file, asked.log_file_bytes);
      chosen.when_full = asked.when_full;
      chosen.ring_records = asked.ring_records;
      chosen.drain_interval_ms = asked.drain_interval_ms;
      chosen.backlog_bytes = asked.backlog_bytes;
      chosen.on_message = asked.on_message;
      return instance().start(chosen);
    },
    []() noexcept { instance().stop(); },
    []() noexcept { instance().records().flush(); },
    []() noexcept { return instance().records().dropped(); },
    [](module_state& m, bool environment_counts) noexcept {
      instance().join(m, environment_counts);
    },
    [](module_state& m) noexcept { instance().leave(m); },
    [](record_tag tag) noexcept { instance().begin_task_of(tag); },
    []() noexcept { end_task(); },
};

inline const services* session::make() noexcept {
  // Memory of its own, never freed: scopes may end after every static object is gone.
  instance_ = new (map_memory(sizeof(session))) session;
  this_module_at_forks.before = before_fork;
  this_module_at_forks.after_in_parent = after_fork_in_parent;
  this_module_at_forks.after_in_child = after_fork_in_child;
  return &table_;
}

inline const services* make_services() noexcept {
  return session::make();
}

}  // namespace detail

/// Starts recording; see options. Records what ends from now on, on every thread, also of other
/// shared objects of this process and of children it forks. At most 5 ms.
/// @return false, after saying why once, when the directory cannot be written; the program can go
/// on and just is not recorded. True also when this very recording runs already. Thread safety: all
/// of these functions.
inline bool start(const options& chosen = {}) noexcept {
  return detail::join_session(false).start(
      {chosen.log_file.data(), chosen.log_file.size(), chosen.when_full, chosen.ring_records,
       chosen.drain_interval_ms, chosen.backlog_bytes, chosen.on_message});
}

/// Starts recording to `<log_file>_main_pid_<N>` and `<log_file>_worker_pid_<N>`.
inline bool start(std::string_view log_file) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen);
}

/// Writes every record that is complete by now to the logs. Not needed before exit.
inline void flush() noexcept {
  detail::join_session(true).flush();
}

/// Ends recording, everything written. Scopes still open are not recorded. start() may follow.
inline void stop() noexcept {
  detail::join_session(false).stop();
}

/// How many records this process has lost: dropped by choice (full_ring::drop), or because neither
/// disk nor memory could take them.
inline std::uint64_t dropped() noexcept {
  return detail::join_session(true).dropped();
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SESSION_HPP

#endif  // LOTUS_LOTUS_HPP
