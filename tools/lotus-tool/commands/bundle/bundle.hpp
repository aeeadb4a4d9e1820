// lotus-tool report --bundle: packs the data of a run that a bug report needs.
#ifndef LOTUS_TOOL_COMMANDS_BUNDLE_BUNDLE_HPP
#define LOTUS_TOOL_COMMANDS_BUNDLE_BUNDLE_HPP

#include <ostream>
#include <string>

#include "base/command_runner.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

struct bundle_options {
  std::string dir;
  std::string prefix{default_prefix};
  std::string output;  ///< path of the archive, a .tar.gz file
  /// Whether to hide the names of operations, stages, counters, threads and loaders like secrets.
  bool hide_names = false;
  bool quiet = false;
};

/// Writes an archive with versions, the run's information files (which describe its processes), the
/// first and last lines of its logs, a list of its files, and the output of `stats` and `diagnose`.
/// Removes possible secrets with a `scrubber`. Packs a run even if the commands cannot read it.
/// Throws input_error if the folder cannot be read or the archive cannot be written.
int run_bundle(const bundle_options& options, const command_runner& run_command, std::ostream& out,
               std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_BUNDLE_BUNDLE_HPP
