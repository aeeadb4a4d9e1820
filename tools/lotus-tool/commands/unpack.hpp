// lotus-tool unpack: text from compact logs.
#ifndef LOTUS_TOOL_COMMANDS_UNPACK_HPP
#define LOTUS_TOOL_COMMANDS_UNPACK_HPP

#include <ostream>
#include <string>

#include "log/folder/log_files.hpp"

namespace lotus::tool {

struct unpack_options {
  std::string dir;
  std::string prefix{default_prefix};
  std::string output;  ///< folder; is made, or is empty
  bool strict = false;
  bool quiet = false;
};

/// Writes the logs of all runs in options.dir as the lines that recording text would have written,
/// with the information files, in the same folders below options.output. Older parts of a log, and
/// what a killed process left in its ring, stand in the log. Returns the exit status; throws
/// input_error.
int run_unpack(const unpack_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_UNPACK_HPP
