// Controls Intel VTune through the binary interface of its collector library (ittnotify). Its
// headers are not included: the types below have that interface's binary layout.
#ifndef LOTUS_COLLECTORS_ITT_HPP
#define LOTUS_COLLECTORS_ITT_HPP

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>

#include "lotus/base/lock.hpp"
#include "lotus/collectors/backend.hpp"
#include "lotus/collectors/deadline_caller.hpp"
#include "lotus/collectors/perf.hpp"
#include "lotus/config.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// VTune sets this variable to the path of its collector library.
inline constexpr char itt_library_variable[] = "INTEL_LIBITTNOTIFY64";

struct itt_id {
  unsigned long long d1, d2, d3;
};
struct itt_domain {
  volatile int flags;  ///< 0: VTune does not collect this domain
  const char* name;
  void* name_wide;
  int extra1;
  void* extra2;
  itt_domain* next;
};
struct itt_string_handle;

/// A function of VTune's library: its name, and where that library stores the function's address.
struct itt_function {
  const char* name;
  void** function;
  void* first;
  void* none;
  int group;
};

/// Has the layout of `__itt_global` of ittnotify 3.26.
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

/// The functions of VTune's collector library; null for functions that the installed version lacks.
/// The object is never destroyed, because VTune keeps pointers to it.
class itt_library {
 public:
  void (*resume)() = nullptr;
  void (*pause)() = nullptr;
  void (*detach)() = nullptr;
  itt_domain* (*domain_create)(const char*) = nullptr;
  itt_string_handle* (*string_handle_create)(const char*) = nullptr;
  void (*task_begin)(const itt_domain*, itt_id, itt_id, itt_string_handle*) = nullptr;
  void (*task_end)(const itt_domain*) = nullptr;
  void (*task_begin_overlapped)(const itt_domain*, itt_id, itt_id, itt_string_handle*) = nullptr;
  void (*task_end_overlapped)(const itt_domain*, itt_id) = nullptr;
  /// Adds data to the task with this id; an id of zeros means this thread's innermost task.
  void (*metadata_add)(const itt_domain*, itt_id, itt_string_handle* key, int type,
                       std::size_t count, void* data) = nullptr;
  static constexpr int metadata_u64 = 1;

  /// Returns the library whose path VTune has set in the environment; the first call loads and
  /// initializes it. Returns null, after reporting the reason, if it cannot be loaded. Also returns
  /// null if another thread takes longer than a second to load it. Thread safety: any thread.
  static itt_library* get() noexcept {
    static lazy_lookup<itt_library*> loaded;
    return loaded.get(load, nullptr);
  }

 private:
  LOTUS_DETAIL_COLD static itt_library* load() noexcept {
    const char* path = secure_getenv(itt_library_variable);
    if (path == nullptr || *path == '\0') {
      say("the itt collector needs %s; run the program with vtune", itt_library_variable);
      return nullptr;
    }
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      say("cannot load VTune's collector: %s", dlerror());
      return nullptr;
    }
    static itt_library self;
    // The library collects only after __itt_api_init has received a table, in which it stores the
    // addresses of its functions. Old libraries do not have __itt_api_init: their functions are
    // looked up by name.
    using init = void (*)(itt_global*, int);
    if (auto* start = reinterpret_cast<init>(dlsym(library, "__itt_api_init"))) {
      start(self.table(library), all_groups);
    } else {
      for (itt_function* f = self.functions_; f->name != nullptr; ++f) {
        *f->function = dlsym(library, f->name);
      }
    }
    if (self.resume == nullptr || self.pause == nullptr) {
      say("%s is not a VTune collector: it has no __itt_resume and __itt_pause", path);
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
  itt_function functions_[11] = {
      {"__itt_resume", place(resume), nullptr, nullptr, control_group},
      {"__itt_pause", place(pause), nullptr, nullptr, control_group},
      {"__itt_detach", place(detach), nullptr, nullptr, control_group},
      {"__itt_domain_create", place(domain_create), nullptr, nullptr, structure_group},
      {"__itt_string_handle_create", place(string_handle_create), nullptr, nullptr,
       structure_group},
      {"__itt_task_begin", place(task_begin), nullptr, nullptr, structure_group},
      {"__itt_task_end", place(task_end), nullptr, nullptr, structure_group},
      {"__itt_task_begin_overlapped", place(task_begin_overlapped), nullptr, nullptr,
       structure_group},
      {"__itt_task_end_overlapped", place(task_end_overlapped), nullptr, nullptr, structure_group},
      {"__itt_metadata_add", place(metadata_add), nullptr, nullptr, structure_group},
      {nullptr, nullptr, nullptr, nullptr, 0},
  };
};

/// Whether this program runs under VTune, which then sets the variable INTEL_LIBITTNOTIFY64.
inline bool itt_is_here() noexcept {
  return secure_getenv(itt_library_variable) != nullptr;
}

inline const collector_backend* itt_backend() noexcept {
  static constexpr collector_backend table = [] {
    collector_backend b;
    b.acknowledges = false;
    b.begin = []() noexcept { return itt_library::get() != nullptr; };
    b.resume = []() noexcept { return call_with_deadline([] { itt_library::get()->resume(); }); };
    b.pause = []() noexcept { return call_with_deadline([] { itt_library::get()->pause(); }); };
    b.detach = []() noexcept {
      call_with_deadline([] {
        itt_library& itt = *itt_library::get();
        itt.pause();
        if (itt.detach != nullptr) itt.detach();
      });
    };
    b.interval_ns = asked_interval_ns;
    return b;
  }();
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_ITT_HPP
