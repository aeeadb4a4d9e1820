// What a collector is to the rest of the library: a table of functions.
#ifndef LOTUS_COLLECTORS_BACKEND_HPP
#define LOTUS_COLLECTORS_BACKEND_HPP

#include <cstdint>

#include "lotus/base/environment.hpp"
#include "lotus/config.hpp"
#include "lotus/record/environment_report.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// How long a collector may take to answer.
inline std::int64_t collector_timeout_ms() noexcept {
  return static_cast<std::int64_t>(number_setting(variable::collector_timeout_ms));
}

/// The interval that lotus-tool asked its collector for.
inline std::uint64_t asked_interval_ns() noexcept {
  return 1'000'000'000 / number_setting(variable::map_rate);
}

/// One kind of collector. All calls come one at a time, never nested, never after detach().
struct collector_backend {
  /// resume() and pause() return only when collection is on or off; without it the caller must
  /// sleep, or late samples of the code before fall into the region.
  bool acknowledges = true;
  /// It sees every instruction from resume() to pause(), the library's own included.
  bool counts_instructions = false;
  /// Gets ready, paused. False, after saying why, when it cannot be used.
  bool (*begin)() noexcept = nullptr;
  /// False when the collector does not answer any more.
  bool (*resume)() noexcept = nullptr;
  bool (*pause)() noexcept = nullptr;
  /// For good. May be called at any time after begin().
  void (*detach)() noexcept = nullptr;
  /// CPU time between two samples, in ns; 0 where there are no samples.
  std::uint64_t (*interval_ns)() noexcept = nullptr;
  /// A collected region has ended (times of CLOCK_MONOTONIC in ns). May be null.
  void (*region)(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept = nullptr;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_BACKEND_HPP
