// Reads data from Lotus's logs that a profiler's trace of the same program lacks: waits for
// batches, copies and the critical path.
#ifndef LOTUS_TOOL_ACCELERATOR_RECORDED_WAITS_HPP
#define LOTUS_TOOL_ACCELERATOR_RECORDED_WAITS_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/host_timeline.hpp"
#include "accelerator/trace/device_trace.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// What was on the critical path: an operation or stage, or an activity without a name.
struct late_activity {
  std::optional<std::string> name;         ///< of the operation or stage, without S
  path_kind kind = path_kind::unrecorded;  ///< of what has no name

  /// Whether it is work of the loader outside of all operations.
  bool is_unmarked() const noexcept { return !name && kind == path_kind::unrecorded; }
  /// Returns what it is called in outputs that programs read.
  std::string_view key() const noexcept { return name ? *name : path_kind_name(kind); }
  bool operator<(const late_activity& other) const noexcept { return key() < other.key(); }
};

/// An interval of the critical path with one activity.
struct path_part {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  late_activity activity;
};

/// The start of the consumer's wait for a batch.
struct batch_start {
  std::int64_t at_ns = 0;
  std::uint64_t number = 0;
  std::uint32_t epoch = 0;
};

/// Data from logs, in order of time. All times are on the trace's clock.
struct recorded_waits {
  std::vector<recorded_range> ranges;  ///< waits for batches, and scopes named Copy
  std::vector<path_part> path;
  std::vector<batch_start> batches;
};

/// Returns the waits for batches, the copies and the critical path of a run.
/// @param run  if several processes consumed batches, only those in the trace are used, or all of
///   them if none is in the trace.
recorded_waits find_recorded_waits(const run_data& run, const device_trace& trace);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_RECORDED_WAITS_HPP
