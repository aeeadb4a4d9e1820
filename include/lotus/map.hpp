// Provides what controls a profiler that is chosen at run time: class collector, and the classes of
// LOTUS_MAP_REGION, which makes the profiler collect data about one operation.
#ifndef LOTUS_MAP_HPP
#define LOTUS_MAP_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "lotus/config.hpp"
#include "lotus/record/collector_calls.hpp"
#include "lotus/record/record.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

class collector_state;

/// Makes the compiler assume that the value is read and written at this point. Then the compiler
/// does not move computations that produce or use the value across this point.
LOTUS_DETAIL_ALWAYS_INLINE void fence_value(const volatile void* value) noexcept {
  __asm__ volatile("" : : "r"(value) : "memory");
}
template <class T>
LOTUS_DETAIL_ALWAYS_INLINE const volatile void* address_of(T& value) noexcept {
  return &reinterpret_cast<const volatile char&>(value);
}
LOTUS_DETAIL_ALWAYS_INLINE void fence_memory() noexcept {
  __asm__ volatile("" : : : "memory");
}

}  // namespace detail

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

#if LOTUS_SUPPORTED
/// Runs the passes (executions) of the block of a LOTUS_MAP_REGION. The macro declares the object
/// in the head of a `for` statement, so that break, return or an exception in the block ends the
/// pass and pauses the profiler. Errors: none thrown. Thread safety: any thread; each object
/// belongs to one thread. The functions are defined in engine/map_passes.hpp.
class map_region {
 public:
  /// @param name  name of the operation; copied, up to 255 bytes.
  LOTUS_DETAIL_PER_MODULE explicit map_region(std::string_view name) noexcept {
    begin_region(name);
  }
  map_region(const map_region&) = delete;
  map_region& operator=(const map_region&) = delete;
  LOTUS_DETAIL_PER_MODULE ~map_region() { end_region(); }

  /// Ends the current pass and begins the next one. Returns false after the last pass.
  LOTUS_DETAIL_PER_MODULE bool next() noexcept;

 private:
  // The engine defines these functions. The constructor and the destructor above only call
  // begin_region() and end_region(). If the engine defined a constructor instead, clang would emit
  // only its base-object variant in the file with LOTUS_IMPLEMENTATION, where nothing calls it, and
  // other files could not link.
  LOTUS_DETAIL_PER_MODULE void begin_region(std::string_view name) noexcept;
  LOTUS_DETAIL_PER_MODULE void end_region() noexcept;
  LOTUS_DETAIL_PER_MODULE void begin_pass() noexcept;
  LOTUS_DETAIL_PER_MODULE void end_pass() noexcept;
  LOTUS_DETAIL_PER_MODULE void dump_part() noexcept;
  LOTUS_DETAIL_PER_MODULE void list() const noexcept;
  LOTUS_DETAIL_PER_MODULE std::int64_t ns_since(std::uint64_t ticks) const noexcept;
  /// Returns a reference to a thread-local pointer. It points to this thread's innermost region
  /// that is executing a pass after its warm-up; null if there is none.
  LOTUS_DETAIL_PER_MODULE static map_region*& innermost() noexcept;

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
#else
/// The version of this class for systems that lotus does not support: it runs the block of a
/// LOTUS_MAP_REGION once.
class map_region {
 public:
  /// Ignores the name, because no data is collected on a system that lotus does not support.
  explicit map_region(std::string_view) noexcept {}
  map_region(const map_region&) = delete;
  map_region& operator=(const map_region&) = delete;
  /// Returns true in the first call and false in the second, so that the block runs once.
  bool next() noexcept { return !begun_ && (begun_ = true); }

 private:
  bool begun_ = false;
};
#endif

/// A map_region and the variables that its block reads and writes. The class makes the compiler
/// compute these variables within the passes. Otherwise the compiler could move a pure function of
/// local variables out of the block, and the profiler would not see it.
template <class... Values>
class fenced_map_region {
 public:
  /// @param values  variables that the block reads and writes; they must outlive the region.
  explicit fenced_map_region(std::string_view name, Values&... values) noexcept
      : region_{name}, values_{detail::address_of(values)..., nullptr} {}

  /// See map_region::next().
  LOTUS_DETAIL_ALWAYS_INLINE bool next() noexcept {
    fence(std::index_sequence_for<Values...>{});
    const bool more = region_.next();
    fence(std::index_sequence_for<Values...>{});
    return more;
  }

 private:
  template <std::size_t... I>
  LOTUS_DETAIL_ALWAYS_INLINE void fence(std::index_sequence<I...>) noexcept {
    (detail::fence_value(values_[I]), ...);
    detail::fence_memory();
  }

  map_region region_;
  const volatile void* values_[sizeof...(Values) + 1];
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_MAP_HPP
