// The consumer's side of some seconds of a run, whose beginning is cut off.
#ifndef LOTUS_TOOL_COMMANDS_TOP_CONSUMER_TIMES_HPP
#define LOTUS_TOOL_COMMANDS_TOP_CONSUMER_TIMES_HPP

#include <cstdint>
#include <optional>
#include <vector>

#include "log/folder/log_files.hpp"

namespace lotus::tool {

struct consumer_times {
  std::vector<std::int64_t> handed_over_ns;  ///< in order
  std::optional<double> wait_share;          ///< of the consumer's time; missing without waits
};

/// Of all batches, whether their making is among those seconds or before.
consumer_times consumer_times_of(const run_files& run, std::int64_t begin_ns);

/// Takes out waits and hand-overs of batches that were made before those seconds: in a run whose
/// numbers come again they would be taken for those of the next epoch.
void leave_out_unmade(run_files& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_CONSUMER_TIMES_HPP
