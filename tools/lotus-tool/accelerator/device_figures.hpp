// Computes how busy accelerators and their streams were, and what they copied.
#ifndef LOTUS_TOOL_ACCELERATOR_DEVICE_FIGURES_HPP
#define LOTUS_TOOL_ACCELERATOR_DEVICE_FIGURES_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "accelerator/trace/device_trace.hpp"

namespace lotus::tool {

/// Returns a part of a time as a share (0..1); 0 of no time.
inline double time_share(std::int64_t ns, std::int64_t of_ns) noexcept {
  return of_ns > 0 ? static_cast<double>(ns) / static_cast<double>(of_ns) : 0;
}

/// The idle time of a stream, divided as in HolisticTraceAnalysis (a tool for PyTorch traces). The
/// gap before a kernel or copy is the time since the previous kernel or copy of the stream ended.
/// It is negative if the two overlap.
struct stream_idle {
  /// Gaps before work that the host launched only after the previous work had ended.
  std::int64_t host_wait_ns = 0;
  std::int64_t kernel_wait_ns = 0;  ///< gaps below 30 us before work that was launched earlier
  std::int64_t other_ns = 0;
};

struct stream_figures {
  std::int64_t number = 0;
  std::int64_t busy_ns = 0;
  stream_idle idle;
};

/// Sums for the copies of one direction and kind of memory.
struct copy_sum {
  std::uint64_t count = 0;
  std::int64_t ns = 0;
  std::uint64_t bytes = 0;    ///< of the copies whose size is known
  std::int64_t ns_known = 0;  ///< the time of these copies

  void add(const device_work& copy) noexcept {
    ++count;
    ns += copy.end_ns - copy.start_ns;
    bytes += copy.bytes;
    if (copy.bytes != 0) ns_known += copy.end_ns - copy.start_ns;
  }
  /// Returns bytes per nanosecond, which is the same as GB/s; nullopt if it is unknown.
  std::optional<double> gb_per_s() const noexcept {
    if (ns_known <= 0 || bytes == 0) return std::nullopt;
    return static_cast<double>(bytes) / static_cast<double>(ns_known);
  }
  void add(const copy_sum& more) noexcept {
    count += more.count;
    ns += more.ns;
    bytes += more.bytes;
    ns_known += more.ns_known;
  }
};

struct copy_figures {
  copy_sum all;
  std::array<copy_sum, 3> by_memory;  ///< sums by kind of memory; the index is a host_memory

  const copy_sum& of(host_memory memory) const {
    return by_memory[static_cast<std::size_t>(memory)];
  }
};

/// A time in which a device does nothing.
struct device_gap {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::size_t next = 0;  ///< index in device_trace::work of the work that ends the gap; or SIZE_MAX
};

/// How a device spent its time, over all its streams.
struct device_figures {
  std::int64_t device = 0;
  std::int64_t start_ns = 0;          ///< start of the first kernel or copy
  std::int64_t span_ns = 0;           ///< from start_ns to the end of the last kernel or copy
  std::int64_t compute_ns = 0;        ///< time in which at least one computing kernel ran
  std::int64_t communication_ns = 0;  ///< time in which at least one communicating kernel ran
  /// Time in which communicating kernels ran and no computing kernel did.
  std::int64_t only_communication_ns = 0;
  /// Time in which data was copied from or to the host and no kernel ran.
  std::int64_t only_copies_ns = 0;
  std::int64_t idle_ns = 0;  ///< time in which nothing ran
  std::vector<stream_figures> streams;
  std::map<copy_kind, copy_figures> copies;
  std::vector<device_gap> gaps;   ///< gaps; the sum of their lengths is idle_ns
  std::vector<device_gap> waits;  ///< times in which a stream waited for an event
  /// Time in which only communicating kernels ran, in each of several equally long parts of the
  /// span.
  std::vector<std::int64_t> only_communication_of_parts_ns;

  std::int64_t busy_ns() const noexcept { return span_ns - idle_ns; }
  /// Busy time without the time in which only communicating kernels ran, because these may only be
  /// waiting for other devices.
  std::int64_t working_ns() const noexcept { return busy_ns() - only_communication_ns; }
};

/// The number of parts in device_figures::only_communication_of_parts_ns.
inline constexpr std::size_t span_parts = 6;

/// Removes all work that was launched before a time. Work that no known call launched counts by its
/// own start.
void leave_out_before(device_trace& trace, std::int64_t ns);

/// If there are several profiler steps, removes all work that was launched after the start of the
/// last step, and returns true. HolisticTraceAnalysis does the same, because the recording may have
/// ended while the work of the last step was still running.
bool leave_out_last_step(device_trace& trace);

/// Returns the measurements of every device, in order of the devices' numbers.
std::vector<device_figures> figures_of_devices(const device_trace& trace, const call_starts& calls);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_DEVICE_FIGURES_HPP
