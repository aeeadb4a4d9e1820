// Operations that were counted but not recorded: sums and distributions, without single times.
#ifndef LOTUS_TOOL_AGGREGATES_DATA_AGGREGATED_HPP
#define LOTUS_TOOL_AGGREGATES_DATA_AGGREGATED_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "aggregates/data/aggregate_file.hpp"
#include "base/diagnostics.hpp"
#include "base/statistics/distribution.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// The calls of one name by all threads of a run or of a loader.
struct aggregated_op {
  std::string name;  ///< decoded, including its S
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;  ///< the part of the total outside of scopes inside these calls
  std::vector<duration_bucket> durations;  ///< sorted by rising `ns`
};

/// Returns the operations that a run's processes counted, the largest total first. Throws
/// input_error.
std::vector<aggregated_op> read_aggregated(const run_files& run, diagnostic_log& diagnostics);

/// Describes the durations as if each had been recorded: count, total and mean are exact,
/// everything else is accurate to 0.8 %.
distribution describe(const aggregated_op& op);

/// The share of the calls that took less than `limit_ns`, 0..1.
double share_below(const aggregated_op& op, std::int64_t limit_ns);

/// "3 aggregated operations have no times of their own, so there is no window of them"
std::string no_window_text(const std::vector<aggregated_op>& ops);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_AGGREGATES_DATA_AGGREGATED_HPP
