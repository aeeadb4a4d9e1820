// Reads the hidden file in which a process stores the operations that it counted but did not
// record.
#ifndef LOTUS_TOOL_AGGREGATES_DATA_AGGREGATE_FILE_HPP
#define LOTUS_TOOL_AGGREGATES_DATA_AGGREGATE_FILE_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// The number of calls that took about `ns`; the bucket is at most 0.8 % off.
struct duration_bucket {
  double ns = 0;
  std::uint64_t count = 0;
};

/// The calls of one name by one thread, or by several threads that ended one after the other.
struct thread_aggregate {
  std::string name;       ///< decoded, including its S
  std::uint64_t tid = 0;  ///< 0: several threads
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;                ///< without the scopes inside these calls
  std::vector<duration_bucket> durations;  ///< the counts add up to `count`; sorted by rising `ns`
};

/// Returns all sections of a file. A section that was written twice (because a recovery was killed)
/// counts once; an incomplete section is ignored. Throws input_error if the file cannot be read.
std::vector<thread_aggregate> read_aggregates(const log_file& file, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_AGGREGATES_DATA_AGGREGATE_FILE_HPP
