// Runs a program so that it records.
#ifndef LOTUS_TOOL_COMMANDS_LAUNCH_HPP
#define LOTUS_TOOL_COMMANDS_LAUNCH_HPP

#include <string>
#include <vector>

namespace lotus::tool {

struct launch_options {
  std::vector<std::string> program;  ///< and its arguments
  /// Folder for its logs. Empty: run/, or run-2/, ... where there is something in it already.
  std::string dir;
  bool memory = false;  ///< its allocations are counted
};

struct launched {
  std::string dir;     ///< of its logs: the last one that it recorded to, if it chose one itself
  std::string prefix;  ///< of their names
  int status = 0;      ///< of the program; 128 + the signal where one ended it
};

/// What a program is started with so that its allocations are counted: liblotus_memory.so, in
/// lib/lotus beside the folder of this program. Throws input_error where it is not there.
std::string memory_library();

/// Runs a program to its end, with our terminal and our signals, and LOTUS_LOG_FILE set to
/// options.dir. Where that is set already it stays, unless options.dir says otherwise. Throws
/// input_error when the program cannot be started.
launched launch(const launch_options& options);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_LAUNCH_HPP
