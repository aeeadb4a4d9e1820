// Runs a program with recording turned on.
#ifndef LOTUS_TOOL_LAUNCH_LAUNCH_HPP
#define LOTUS_TOOL_LAUNCH_LAUNCH_HPP

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "log/folder/new_run.hpp"
#include "threads/record/thread_recorder.hpp"

namespace lotus::tool {

struct launch_options {
  std::vector<std::string> program;  ///< name or path of the program, followed by its arguments
  /// Folder for the logs. If empty: run/, or run-2/, run-3/ and so on if run/ is not empty.
  std::string dir;
  bool memory = false;  ///< count the program's allocations
  /// Sample from outside what the program's threads do, and store the samples with the logs.
  bool threads = false;
  /// Variables to add to the program's environment.
  std::vector<std::pair<std::string, std::string>> environment = {};
  /// Descriptor for the program's output, see command::output_to; -1: that of the tool.
  int output_to = -1;
};

struct launched {
  std::string dir;          ///< folder of the logs; if the program used several, the last one
  std::string prefix;       ///< beginning of the log files' names
  int status = 0;           ///< exit status of the program, or 128 + the signal that ended it
  bool threads = false;     ///< whether the folder has samples of threads
  std::string not_sampled;  ///< why a part of the sampling was not possible; "" if all was
};

/// Returns the path of liblotus_memory.so, which counts a program's allocations. It is in
/// ../lib/lotus, relative to the folder of lotus-tool. Throws input_error if it does not exist.
std::string memory_library();

/// A program that records. LOTUS_LOG_FILE is set to options.dir if that was given, else to its
/// present value, else to the default folder.
class recording_program {
 public:
  /// Starts the program. Throws input_error if it cannot be started.
  explicit recording_program(const launch_options& options);

  child_process& process() noexcept { return process_; }
  /// Waits until the program has ended, and samples its threads if options.threads is set.
  void wait();
  /// Returns the folder of the program's logs, and its exit status if it has ended. Stores the
  /// samples of its threads; call it once.
  launched result();

 private:
  new_run asked_;
  start_list starts_;
  child_process process_;
  std::optional<thread_recorder> recorder_;
};

/// Runs a program and waits until it ends. The program uses the tool's terminal and gets its
/// signals. Throws input_error if the program cannot be started.
launched launch(const launch_options& options);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LAUNCH_LAUNCH_HPP
