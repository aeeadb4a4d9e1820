// Passes the calls of lotus::collector to the collector: the profiler that runs the program.
#ifndef LOTUS_RECORD_COLLECTOR_CALLS_HPP
#define LOTUS_RECORD_COLLECTOR_CALLS_HPP

#include <atomic>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

enum class collector_call { resume, pause, detach };

/// True after this shared object has looked for a collector and found none; then no call is needed.
LOTUS_DETAIL_PER_MODULE inline std::atomic<bool> no_collector{!LOTUS_SUPPORTED};

#if LOTUS_SUPPORTED
/// Calls the collector; the first call finds the collector. Defined in
/// collectors/collector_state.hpp.
LOTUS_DETAIL_RARE void call_collector(collector_call call) noexcept;
#else
inline void call_collector(collector_call) noexcept {}
#endif

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_COLLECTOR_CALLS_HPP
