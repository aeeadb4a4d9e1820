// lotus-tool accelerator: explains why accelerators are idle.
#ifndef LOTUS_TOOL_COMMANDS_ACCELERATOR_COMMAND_HPP
#define LOTUS_TOOL_COMMANDS_ACCELERATOR_COMMAND_HPP

#include <ostream>
#include <string>
#include <vector>

#include "accelerator/analysis.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

struct accelerator_options {
  /// Kineto traces, nsys databases, and folders with logs of the program that was traced. If only
  /// folders are given, the traces in these folders are read.
  std::vector<std::string> paths;
  std::string prefix{default_prefix};
  analysis_options analysis;
  std::string rank;  ///< if it is not empty, only this rank is shown
  bool all = false;  ///< whether to print all rows of tables
  bool json = false;
  bool strict = false;
  bool quiet = false;
};

/// Prints why accelerators are idle. Returns the exit status; throws input_error and usage_error.
int run_accelerator(const accelerator_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_ACCELERATOR_COMMAND_HPP
