// Reads aggregated operations: sums and distributions of calls that were counted, not recorded.
#ifndef LOTUS_TOOL_AGGREGATES_DATA_AGGREGATED_HPP
#define LOTUS_TOOL_AGGREGATES_DATA_AGGREGATED_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/statistics/distribution.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// The number of calls that took about `ns`: the true durations differ from it by at most 0.8 %.
struct duration_bucket {
  double ns = 0;
  std::uint64_t count = 0;
};

/// The calls of one aggregated operation by one thread, or by several threads that ran one after
/// another: a new thread continues the aggregates of a thread that has ended.
struct thread_aggregate {
  std::string name;       ///< decoded name; like all names in logs, it begins with an S
  std::uint64_t tid = 0;  ///< thread id; 0 stands for several threads
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;                ///< time without the scopes inside these calls
  std::vector<duration_bucket> durations;  ///< sorted by `ns`; the sum of the counts is `count`
};

/// Returns the aggregates in a file, to which each process adds a section. A section that was
/// written twice, because recovery was killed and repeated, counts once; an incomplete section is
/// ignored. Throws input_error if the file cannot be read.
std::vector<thread_aggregate> read_aggregates(const log_file& file, diagnostic_log& diagnostics);

/// The calls of one aggregated operation by all threads of a run or of a loader.
struct aggregated_op {
  std::string name;  ///< decoded name; like all names in logs, it begins with an S
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;                ///< time without the scopes inside these calls
  std::vector<duration_bucket> durations;  ///< sorted by `ns`
};

/// Returns the aggregated operations of a run; the one with the largest total comes first. Throws
/// input_error.
std::vector<aggregated_op> read_aggregated(const run_files& run, diagnostic_log& diagnostics);

/// Returns the statistics of an aggregated operation, in the form that is also used for operations
/// whose calls were recorded. Count, total and mean are exact. The error of all other values is at
/// most 0.8 %.
distribution describe(const aggregated_op& op);

/// Returns the share (0..1) of calls that took less than `limit_ns`.
double share_below(const aggregated_op& op, std::int64_t limit_ns);

/// Returns a note for the user: the aggregated operations `ops` have no times, so they are not
/// drawn and no time window can be cut out of them.
std::string no_window_text(const std::vector<aggregated_op>& ops);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_AGGREGATES_DATA_AGGREGATED_HPP
