// Reads a hidden file of a run with aggregated operations, whose calls are counted instead of
// recorded.
#ifndef LOTUS_TOOL_AGGREGATES_DATA_AGGREGATE_FILE_HPP
#define LOTUS_TOOL_AGGREGATES_DATA_AGGREGATE_FILE_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
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

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_AGGREGATES_DATA_AGGREGATE_FILE_HPP
