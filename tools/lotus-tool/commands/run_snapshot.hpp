// A copy of a run as it is now, beside it.
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
  /// How long the recording process has to answer.
  std::chrono::milliseconds patience{5000};
};

/// Has a process that records there make a snapshot, which has all that was complete; makes one of
/// the logs where none lives, or answers. Prints its path. Returns the exit status; throws
/// input_error where there is no run, or no room.
int run_snapshot(const snapshot_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_RUN_SNAPSHOT_HPP
