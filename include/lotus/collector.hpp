// Provides functions that resume, pause and detach a profiler that is chosen at run time.
#ifndef LOTUS_COLLECTOR_HPP
#define LOTUS_COLLECTOR_HPP

#include <atomic>

#include "lotus/config.hpp"
#include "lotus/record/collector_calls.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN

/// Controls the profiler under which this program runs, if any: Intel VTune, AMD uProf, perf,
/// callgrind, or the built-in sampler. The environment variable LOTUS_COLLECTOR selects one: auto
/// (the default: the profiler that is present), itt, uprof, perf, callgrind, builtin, none. The
/// profiler always collects for the whole process.
/// Errors: none thrown; if the profiler cannot be used, one message is reported
/// (options::on_message) and the program goes on without it. Thread safety: any thread. Without a
/// profiler each call only loads one variable.
class collector {
 public:
  /// Makes the profiler collect data. Calls may be nested; each needs its own pause().
  LOTUS_DETAIL_ALWAYS_INLINE static void resume() noexcept { call(detail::collector_call::resume); }
  /// Makes the profiler collect no more data, if this call matches the outermost resume().
  LOTUS_DETAIL_ALWAYS_INLINE static void pause() noexcept { call(detail::collector_call::pause); }
  /// Detaches the profiler, which then collects nothing more until the program ends. Later calls of
  /// all three functions do nothing.
  LOTUS_DETAIL_ALWAYS_INLINE static void detach() noexcept { call(detail::collector_call::detach); }

 private:
  LOTUS_DETAIL_ALWAYS_INLINE static void call(detail::collector_call call) noexcept {
    if (!detail::no_collector.load(std::memory_order_relaxed)) detail::call_collector(call);
  }
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTOR_HPP
