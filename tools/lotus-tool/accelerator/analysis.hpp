// Analyzes a profiler's trace of accelerators (such as GPUs): how busy they were, why they were
// idle, and the verdict.
#ifndef LOTUS_TOOL_ACCELERATOR_ANALYSIS_HPP
#define LOTUS_TOOL_ACCELERATOR_ANALYSIS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/device_figures.hpp"
#include "accelerator/host_timeline.hpp"
#include "accelerator/places.hpp"
#include "accelerator/recorded_waits.hpp"
#include "accelerator/trace/device_trace.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Idle time in ns for each cause.
class cause_times {
 public:
  void add(idle_cause cause, std::int64_t ns) noexcept {
    ns_[static_cast<std::size_t>(cause)] += ns;
  }
  void add(const cause_times& other) noexcept {
    for (const idle_cause cause : all_idle_causes) add(cause, other.of(cause));
  }
  std::int64_t of(idle_cause cause) const noexcept { return ns_[static_cast<std::size_t>(cause)]; }
  std::int64_t sum() const noexcept {
    std::int64_t sum_ns = 0;
    for (const std::int64_t ns : ns_) sum_ns += ns;
    return sum_ns;
  }
  /// Returns the time for the causes that have no column in tables.
  std::int64_t other() const noexcept {
    return of(idle_cause::host) + of(idle_cause::device) + of(idle_cause::unknown);
  }

 private:
  std::array<std::int64_t, all_idle_causes.size()> ns_{};
};

/// The idle time of all devices during one step or batch.
struct idle_part {
  std::uint64_t number = 0;  ///< number of the step or batch
  std::uint32_t epoch = 0;   ///< epoch of the batch
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  cause_times causes;
};

/// The main cause of the accelerators' idle time.
enum class device_verdict : std::uint8_t {
  /// Devices work for 90 % of the time, or no cause of idle time takes more than 5 % of it.
  busy,
  batch_wait,
  copy,
  synchronization,
  launch,
  host,
  device,  ///< the devices themselves pause between works that the host had launched before
  unknown
};

/// What outputs say about a verdict.
struct device_verdict_row {
  device_verdict is;
  std::string_view key;             ///< name in all outputs, such as "input-bound"
  std::optional<idle_cause> cause;  ///< the cause of idle time that the verdict is about
  std::string_view reason;          ///< the reason in a sentence "the device is idle because …"
};

inline constexpr std::array all_device_verdicts{
    device_verdict_row{device_verdict::busy, "device-busy", {}, ""},
    device_verdict_row{device_verdict::batch_wait, "input-bound", idle_cause::batch_wait,
                       "because the consumer waits for batches"},
    device_verdict_row{device_verdict::copy, "copy-bound", idle_cause::copy, ""},
    device_verdict_row{device_verdict::synchronization, "synchronization-bound",
                       idle_cause::synchronization,
                       "because the host, streams or devices wait for each other"},
    device_verdict_row{device_verdict::launch, "launch-bound", idle_cause::launch,
                       "because the host (the CPU) launches kernels too slowly"},
    device_verdict_row{device_verdict::host, "host-bound", idle_cause::host,
                       "because the host does something else"},
    device_verdict_row{
        device_verdict::device, "scheduling-bound", idle_cause::device,
        "between works that the host had launched before, as between many short kernels"},
    device_verdict_row{device_verdict::unknown, "unknown", idle_cause::unknown,
                       "and the trace does not show why: it has no calls that launch work"},
};

/// Whether the list has one row for each verdict, in the order of the verdicts.
constexpr bool has_all_device_verdicts() noexcept {
  for (std::size_t i = 0; i < all_device_verdicts.size(); ++i) {
    if (static_cast<std::size_t>(all_device_verdicts[i].is) != i) return false;
  }
  return all_device_verdicts.size() == static_cast<std::size_t>(device_verdict::unknown) + 1;
}
static_assert(has_all_device_verdicts());

constexpr const device_verdict_row& row_of(device_verdict verdict) noexcept {
  return all_device_verdicts[static_cast<std::size_t>(verdict)];
}

constexpr std::string_view device_verdict_name(device_verdict verdict) noexcept {
  return row_of(verdict).key;
}

/// The time for which the verdict stands, as a sum over all devices: from the first to the last
/// work of each device without start-up. If it shows only few steps, also the time of these steps
/// before the first and after the last work.
struct judged_time {
  std::int64_t span_ns = 0;
  cause_times causes;
  std::int64_t only_copies_ns = 0;  ///< time in which devices only copied and no kernel ran
  std::int64_t only_communication_ns = 0;
  std::int64_t edges_ns = 0;  ///< how much of it is before the first and after the last work

  std::int64_t busy_ns() const noexcept { return span_ns - causes.sum(); }
  /// Returns the time that a verdict is about.
  std::int64_t of(device_verdict verdict) const noexcept;
};

/// Long gaps that occur only once, while libraries and modules are loaded: in the first step, or
/// during the first launch of a kernel.
struct start_up_time {
  std::size_t gaps = 0;
  cause_times causes;
};

struct accelerator_analysis {
  std::string path;
  std::optional<std::uint64_t> rank;
  std::string logs;  ///< folder of the run whose logs were used; "" if there is none
  std::set<std::uint64_t> processes;  ///< processes that called the accelerator's runtime
  std::size_t step_count = 0;         ///< number of the profiler steps that were analyzed
  std::int64_t first_ns = 0;  ///< start of the first kernel or copy, in ns since the Unix epoch
  std::int64_t last_ns = 0;   ///< end of the last kernel or copy
  bool without_last_step = false;  ///< whether the last step is left out
  bool rounded = false;            ///< whether times were rounded to whole microseconds
  std::vector<device_figures> devices;
  /// Idle time by cause, one element per device. The sum of an element is the device's idle_ns.
  std::vector<cause_times> causes;
  /// The time in which devices waited for batches, by what was on the run's critical path at that
  /// time. Empty if no run that Lotus recorded is given.
  std::map<late_activity, std::int64_t> late_ns;
  std::vector<idle_part> steps;  ///< the profiler's steps, named ProfilerStep#N
  /// The idle time during each batch, which lasts from the wait for this batch to the next wait.
  std::vector<idle_part> batches;
  device_verdict is = device_verdict::busy;
  judged_time judged;
  start_up_time start_up;  ///< empty if it is not left out
  idle_places places;      ///< where the time of the verdict is
  std::size_t skipped_steps = 0;
  trace_faults faults;
  std::optional<std::uint64_t> all_ranks;  ///< the number of ranks of the training
  bool loads_alone = false;                ///< whether the loader has no worker processes
  /// Whether there is a loader, or a consumer that waits. If not, the thread that launches work
  /// also builds the batches.
  bool has_waits = false;

  /// Returns the sum of a time over all devices.
  std::int64_t sum(std::int64_t device_figures::*ns) const noexcept;
  std::int64_t span_ns() const noexcept { return sum(&device_figures::span_ns); }
  cause_times all_causes() const noexcept;
  /// Returns all idle time that the analysis knows: also that before the first and after the last
  /// work, if the verdict is about it too.
  cause_times shown_causes() const noexcept;
  /// Returns the sum over all devices of the time from the start of the device's first work to the
  /// end of its last work, without the time in which it only communicated. Communication includes
  /// waiting for other ranks.
  std::int64_t own_ns() const noexcept {
    return span_ns() - sum(&device_figures::only_communication_ns);
  }
  /// Returns for what devices waited longest, according to late_ns; nullptr if late_ns is empty.
  const late_activity* latest() const;
  /// Returns how many times as fast the devices would be at most without the cause of the verdict.
  std::optional<double> at_most_times_as_fast() const;
};

struct analysis_options {
  time_rounding rounding = time_rounding::whole_us;
  bool with_last_step = false;
  /// How many of the first steps are left out; by default, gaps that are clearly start-up are.
  std::optional<std::size_t> skip_steps;
};

/// Calls `use` for each trace in a file. The file is a Kineto trace (of PyTorch's profiler) or an
/// nsys database, which contains a trace for each process. Only one trace is in memory at a time.
/// Throws input_error.
void for_each_trace(const std::string& path, time_rounding rounding,
                    const std::function<void(device_trace&&)>& use);

/// Returns whether a trace and a run overlap in time, so that they may be of the same execution.
bool is_of_run(const device_trace& trace, const run_data& run) noexcept;

/// Analyzes a trace.
/// @param run  a run that Lotus recorded at the same time, read with run_parts::operations; may be
///   nullptr.
accelerator_analysis analyze_accelerator(device_trace trace, const analysis_options& options,
                                         const run_data* run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_ANALYSIS_HPP
