// Controls AMD uProf through functions of libAMDProfileController that are looked up at run time.
#ifndef LOTUS_COLLECTORS_UPROF_HPP
#define LOTUS_COLLECTORS_UPROF_HPP

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lotus/collectors/backend.hpp"
#include "lotus/collectors/deadline_caller.hpp"
#include "lotus/collectors/perf.hpp"
#include "lotus/config.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A function of uProf that resumes or pauses collecting. In uProf 4.0 its argument must be 1 (CPU
/// profile). In uProf 5.1 it has no parameter and ignores the argument, which is passed in a
/// register.
using uprof_call = int (*)(unsigned);

struct uprof_calls {
  uprof_call resume;
  uprof_call pause;
  bool strict;  ///< whether the functions return only after collecting was switched on or off
};

/// The functions that the program passed to use_uprof(). If they are null, functions that the
/// program exports are looked up instead.
inline std::atomic<void (*)()> linked_uprof_resume{nullptr};
inline std::atomic<void (*)()> linked_uprof_pause{nullptr};

/// Finds the two functions that resume and pause. Each row of `names` is a pair of functions that
/// must be used together. The pairs whose functions return only after collecting was switched on or
/// off come first.
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

/// Whether the program already contains uProf's functions. If so, uprof_in_use() returns them
/// afterwards.
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
  static constexpr collector_backend table = [] {
    collector_backend b;
    b.acknowledges = Strict;
    b.begin = []() noexcept { return true; };
    b.resume = []() noexcept { return call_with_deadline([] { uprof_in_use().resume(1); }); };
    b.pause = []() noexcept { return call_with_deadline([] { uprof_in_use().pause(1); }); };
    // uProf has no function to detach, so collecting is only paused until the program ends.
    b.detach = []() noexcept { call_with_deadline([] { uprof_in_use().pause(1); }); };
    b.interval_ns = asked_interval_ns;
    return b;
  }();
  return &table;
}

/// Returns the functions of uProf; null, after reporting the reason, if they cannot be found.
inline const collector_backend* uprof_backend() noexcept {
  if (!uprof_is_here()) {
    void* library = dlopen("libAMDProfileController.so", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr || !find_uprof(library, uprof_in_use())) {
      say("LOTUS_COLLECTOR=uprof, but neither the program nor libAMDProfileController.so has "
          "amdProfileResume; link it, or name its functions with lotus::use_uprof()");
      return nullptr;
    }
  }
  return uprof_in_use().strict ? uprof_backend_of<true>() : uprof_backend_of<false>();
}

}  // namespace detail

/// Passes uProf's functions to the library, for programs that link AMD's static
/// libAMDProfileController, whose functions cannot be found at run time. Use it in one source file
/// that includes AMDProfileController.h:
///   const bool linked = lotus::use_uprof([] { amdProfileResume(1); }, [] { amdProfilePause(1); });
/// Call it before the first resume(). Always returns true.
inline bool use_uprof(void (*resume)(), void (*pause)()) noexcept {
  detail::linked_uprof_resume.store(resume, std::memory_order_release);
  detail::linked_uprof_pause.store(pause, std::memory_order_release);
  return true;
}

LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_UPROF_HPP
