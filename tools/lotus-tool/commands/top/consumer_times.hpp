// Computes the consumer's times in the last seconds of a run; older records are not needed.
#ifndef LOTUS_TOOL_COMMANDS_TOP_CONSUMER_TIMES_HPP
#define LOTUS_TOOL_COMMANDS_TOP_CONSUMER_TIMES_HPP

#include <cstdint>
#include <optional>
#include <vector>

#include "log/folder/log_files.hpp"

namespace lotus::tool {

struct consumer_times {
  std::vector<std::int64_t> received_ns;  ///< times when batches were received, in ascending order
  /// The share of its time that the consumer waited; nullopt if there were no waits.
  std::optional<double> wait_share;
};

/// Returns when the consumer received batches, and how much it waited, since `begin_ns`. Batches
/// that were preprocessed before `begin_ns` but received later count too.
consumer_times consumer_times_of(const run_files& run, std::int64_t begin_ns);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_CONSUMER_TIMES_HPP
