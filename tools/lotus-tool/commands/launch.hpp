// Runs a program so that it records.
#ifndef LOTUS_TOOL_COMMANDS_LAUNCH_HPP
#define LOTUS_TOOL_COMMANDS_LAUNCH_HPP

#include <string>
#include <vector>

namespace lotus::tool {

struct launch_options {
  std::vector<std::string> program;  ///< with its arguments
  /// Folder for the logs. Empty: run/, or run-2/, ... if run/ exists and is not empty.
  std::string dir;
  bool memory = false;  ///< count the program's allocations
};

struct launched {
  std::string dir;     ///< of its logs: the last folder that it recorded to, if it chose one itself
  std::string prefix;  ///< of the log files' names
  int status = 0;      ///< exit status of the program, or 128 + the signal that ended it
};

/// The path of liblotus_memory.so, which counts a program's allocations: in lib/lotus next to the
/// folder of this program. Throws input_error if it does not exist.
std::string memory_library();

/// Runs a program to its end, with our terminal and signals, and with LOTUS_LOG_FILE set to
/// options.dir. If that variable is already set, it is kept unless options.dir is given. Throws
/// input_error if the program cannot be started.
launched launch(const launch_options& options);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_LAUNCH_HPP
