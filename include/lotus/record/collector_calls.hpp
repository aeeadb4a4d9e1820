// Passes calls of lotus::collector to the collector: the profiler that observes the program.
#ifndef LOTUS_RECORD_COLLECTOR_CALLS_HPP
#define LOTUS_RECORD_COLLECTOR_CALLS_HPP

#include <atomic>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

enum class collector_call { resume, pause, detach };

/// True once this shared object has looked for a collector and found none, and always on systems
/// that lotus does not support. call_collector() need not be called then.
LOTUS_DETAIL_PER_MODULE inline std::atomic<bool> no_collector{!LOTUS_SUPPORTED};

#if LOTUS_SUPPORTED
/// Passes a call to the collector. The first call determines which profiler that is. Defined in
/// collectors/collector_state.hpp.
LOTUS_DETAIL_RARE void call_collector(collector_call call) noexcept;
#else
inline void call_collector(collector_call) noexcept {}
#endif

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_COLLECTOR_CALLS_HPP
