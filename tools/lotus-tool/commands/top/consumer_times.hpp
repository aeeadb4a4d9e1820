// Computes the consumer's times in the last seconds of a run, without its earlier records.
#ifndef LOTUS_TOOL_COMMANDS_TOP_CONSUMER_TIMES_HPP
#define LOTUS_TOOL_COMMANDS_TOP_CONSUMER_TIMES_HPP

#include <cstdint>
#include <optional>
#include <vector>

#include "log/folder/log_files.hpp"

namespace lotus::tool {

struct consumer_times {
  std::vector<std::int64_t> handed_over_ns;  ///< when batches were received, in order
  std::optional<double> wait_share;          ///< of the consumer's time; nullopt without waits
};

/// Covers all batches received since `begin_ns`, even if they were preprocessed before that.
consumer_times consumer_times_of(const run_files& run, std::int64_t begin_ns);

/// Removes the waits and deliveries of batches whose preprocessing is not among the run's records.
/// Where batch numbers repeat, they would otherwise count as batches of the next epoch.
void leave_out_unmade(run_files& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_CONSUMER_TIMES_HPP
