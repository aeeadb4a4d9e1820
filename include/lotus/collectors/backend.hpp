// Defines the table of functions with which the library controls a collector (a profiler such as
// perf or VTune).
#ifndef LOTUS_COLLECTORS_BACKEND_HPP
#define LOTUS_COLLECTORS_BACKEND_HPP

#include <cstdint>

#include "lotus/base/environment.hpp"
#include "lotus/config.hpp"
#include "lotus/record/environment_report.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns how long the library waits for an answer of a collector, in ms.
inline std::int64_t collector_timeout_ms() noexcept {
  return static_cast<std::int64_t>(number_setting(variable::collector_timeout_ms));
}

/// Returns the sampling interval, in ns, for collectors that cannot report theirs: that of
/// LOTUS_MAP_RATE, which lotus-tool sets to the rate with which it starts the collector.
inline std::uint64_t asked_interval_ns() noexcept {
  return 1'000'000'000 / number_setting(variable::map_rate);
}

/// The functions that control one kind of collector. They are called one at a time, never nested,
/// and never after detach().
struct collector_backend {
  /// Whether resume() and pause() return only after the collector was really switched on or off. If
  /// not, the caller must sleep before a region is executed; otherwise samples of earlier code
  /// could be counted as samples of the region.
  bool acknowledges = true;
  /// Whether the collector counts all instructions between resume() and pause(), including those of
  /// the library.
  bool counts_instructions = false;
  /// Prepares the collector, which does not collect yet. Returns false, after reporting the reason,
  /// if the collector cannot be used.
  bool (*begin)() noexcept = nullptr;
  /// Resumes collecting. Like pause(), returns false if the collector no longer answers.
  bool (*resume)() noexcept = nullptr;
  bool (*pause)() noexcept = nullptr;
  /// Ends collecting permanently. May be called at any time after begin(), also while collecting.
  void (*detach)() noexcept = nullptr;
  /// CPU time between two samples, in ns; 0 if the collector does not sample.
  std::uint64_t (*interval_ns)() noexcept = nullptr;
  /// Called at the end of a region (block of a LOTUS_MAP_REGION) from which data was collected,
  /// with its start and end by CLOCK_MONOTONIC, in ns. May be null.
  void (*region)(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept = nullptr;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_BACKEND_HPP
