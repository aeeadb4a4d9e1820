// lotus-tool snapshot and unpack: copy a run to a new folder, as it is or as text.
#ifndef LOTUS_TOOL_COMMANDS_RUN_SNAPSHOT_HPP
#define LOTUS_TOOL_COMMANDS_RUN_SNAPSHOT_HPP

#include <chrono>
#include <iosfwd>
#include <ostream>
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

struct unpack_options {
  std::string dir;
  std::string prefix{default_prefix};
  std::string output;  ///< path of the folder for the output; it must be empty or not exist yet
  bool strict = false;
  bool quiet = false;
};

/// Writes the logs of all runs in options.dir as text logs, exactly as if the runs had been
/// recorded as text, together with the information files. Subfolders keep their names. Parts of a
/// log, and records that a killed process left in its ring, become one log. Returns the exit
/// status; throws input_error.
int run_unpack(const unpack_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_RUN_SNAPSHOT_HPP
