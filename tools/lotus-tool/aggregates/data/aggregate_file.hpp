// The hidden file of what a process counted instead of recording it.
#ifndef LOTUS_TOOL_AGGREGATES_DATA_AGGREGATE_FILE_HPP
#define LOTUS_TOOL_AGGREGATES_DATA_AGGREGATE_FILE_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// So many calls took about as long: 0.8 % off at most.
struct duration_bucket {
  double ns = 0;
  std::uint64_t count = 0;
};

/// The calls of one name by one thread, or by several that ended one after the other.
struct thread_aggregate {
  std::string name;       ///< with its S, decoded
  std::uint64_t tid = 0;  ///< 0: several
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;                ///< without scopes inside of them
  std::vector<duration_bucket> durations;  ///< as many as `count`, rising
};

/// All that a file says. A section that was written twice, as by a recovery that was killed, counts
/// once; one that does not end is left out. Throws input_error when the file cannot be read.
std::vector<thread_aggregate> read_aggregates(const log_file& file, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_AGGREGATES_DATA_AGGREGATE_FILE_HPP
