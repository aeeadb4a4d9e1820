// Resumes, pauses and detaches a profiler that is chosen at run time.
#ifndef LOTUS_COLLECTOR_HPP
#define LOTUS_COLLECTOR_HPP

#include <atomic>

#include "lotus/config.hpp"
#include "lotus/record/collector_calls.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN

/// Controls the profiler that runs this program, if any: Intel VTune, AMD uProf, perf, callgrind,
/// or the built-in sampler. LOTUS_COLLECTOR selects it: auto (the default: whichever is present),
/// itt, uprof, perf, callgrind, builtin, none. It always collects for the whole process.
/// Errors: none thrown; if the profiler cannot be used, one message says so (options::on_message),
/// and the program goes on without it. Thread safety: all. Without a collector each call costs one
/// load.
class collector {
 public:
  /// Starts collecting; calls nest.
  LOTUS_DETAIL_ALWAYS_INLINE static void resume() noexcept { call(detail::collector_call::resume); }
  /// Stops collecting, once for each resume().
  LOTUS_DETAIL_ALWAYS_INLINE static void pause() noexcept { call(detail::collector_call::pause); }
  /// Ends collecting for the rest of the program. Further calls do nothing.
  LOTUS_DETAIL_ALWAYS_INLINE static void detach() noexcept { call(detail::collector_call::detach); }

 private:
  LOTUS_DETAIL_ALWAYS_INLINE static void call(detail::collector_call call) noexcept {
    if (!detail::no_collector.load(std::memory_order_relaxed)) detail::call_collector(call);
  }
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTOR_HPP
