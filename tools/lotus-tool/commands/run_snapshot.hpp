// lotus-tool snapshot: copies a run to a new folder next to it.
#ifndef LOTUS_TOOL_COMMANDS_RUN_SNAPSHOT_HPP
#define LOTUS_TOOL_COMMANDS_RUN_SNAPSHOT_HPP

#include <chrono>
#include <iosfwd>
#include <string>

#include "log/folder/log_files.hpp"

namespace lotus::tool {

struct snapshot_options {
  std::string dir;
  std::string prefix{default_prefix};
  std::string reason = "asked";
  /// How long to wait for the answer of the recording process.
  std::chrono::milliseconds patience{5000};
};

/// Asks a process that records to options.dir to copy all complete records. If no process is
/// running, or none answers, copies the logs itself. Prints the path of the snapshot. Returns the
/// exit status; throws input_error if there is no run or not enough disk space.
int run_snapshot(const snapshot_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_RUN_SNAPSHOT_HPP
