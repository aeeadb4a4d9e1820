// lotus-tool unpack: converts compact logs to text.
#ifndef LOTUS_TOOL_COMMANDS_UNPACK_HPP
#define LOTUS_TOOL_COMMANDS_UNPACK_HPP

#include <ostream>
#include <string>

#include "log/folder/log_files.hpp"

namespace lotus::tool {

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

#endif  // LOTUS_TOOL_COMMANDS_UNPACK_HPP
