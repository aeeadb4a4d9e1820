// Runs a program with recording turned on, or samples the threads of a process that already runs.
#ifndef LOTUS_TOOL_LAUNCH_LAUNCH_HPP
#define LOTUS_TOOL_LAUNCH_LAUNCH_HPP

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "log/folder/starts.hpp"
#include "threads/data/thread_samples.hpp"
#include "threads/record/thread_recorder.hpp"

namespace lotus::tool {

struct launch_options {
  std::vector<std::string> program;  ///< name or path of the program, followed by its arguments
  /// Folder for the logs. If empty: run/, or run-2/, run-3/ and so on if run/ is not empty.
  std::string dir;
  bool memory = false;  ///< whether to count the program's allocations
  /// Whether to sample what the program's threads do, and to store the samples with the logs.
  bool threads = false;
  /// Variables to add to the program's environment.
  std::vector<std::pair<std::string, std::string>> environment = {};
  /// Descriptor for the program's output, see command::output_to; -1: the output of lotus-tool.
  int output_to = -1;
};

struct launched {
  std::string dir;          ///< folder of the logs; if the program used several, the last one
  std::string prefix;       ///< beginning of the log files' names
  int status = 0;           ///< exit status of the program, or 128 + the signal that ended it
  bool threads = false;     ///< whether the folder has samples of threads
  std::string not_sampled;  ///< why some samples could not be taken; "" if all could
};

/// Returns the path of liblotus_memory.so, which counts a program's allocations. The file is
/// installed below ../lib/lotus, relative to the folder of lotus-tool. Throws input_error if it is
/// missing.
std::string memory_library();

/// Runs a program that records. Sets LOTUS_LOG_FILE for the program to options.dir if that is
/// given. Otherwise the program gets the tool's own LOTUS_LOG_FILE or, if that is not set, the
/// default folder.
class recording_program {
 public:
  /// Starts the program. Throws input_error if it cannot be started.
  explicit recording_program(const launch_options& options);

  child_process& process() noexcept { return process_; }
  /// Waits until the program has ended, and samples its threads if options.threads is set.
  void wait();
  /// Returns the folder of the program's logs and, if the program has ended, its exit status. Also
  /// stores the samples of the threads, so call it only once.
  launched result();

 private:
  new_run asked_;
  start_list starts_;
  child_process process_;
  std::optional<thread_recorder> recorder_;
};

/// Runs a program and waits until it ends. The program shares the terminal of lotus-tool and gets
/// signals that are sent to lotus-tool. Throws input_error if the program cannot be started.
launched launch(const launch_options& options);

/// Returns why some samples could not be taken; "" if all could.
std::string reason_not_sampled(const thread_recorder& recorder);

/// Stores the samples of a program in a folder, which it creates if necessary. Returns false if
/// there are fewer than ten samples, which would show nothing. Throws input_error.
/// @param pid  the program's process, which becomes a part of the file's name.
bool store_samples(thread_samples samples, pid_t pid, const std::string& dir);

struct attach_options {
  pid_t pid = 0;
  double seconds = 0;  ///< how long to sample; 0: until Ctrl-C or the end of the process
  /// Folder for the samples. If empty: run/, or run-2/, run-3/ and so on if run/ is not empty.
  std::string dir;
};

/// The result of attach().
struct attached {
  std::string dir;          ///< folder of the samples
  std::string name;         ///< name of the process
  bool ended = false;       ///< whether the sampling ended because the process ended
  std::string not_sampled;  ///< why some samples could not be taken; "" if all could
};

/// Returns the name of the process `pid`. Call this function before sampling the process. It throws
/// input_error if the process cannot be sampled, for example because it does not exist or this user
/// has no permission.
std::string sampled_name(pid_t pid);

/// Samples the threads of a process and of its descendants, including those that are started later.
/// Does this from outside: adds nothing to the process and never stops it. Ends after
/// options.seconds, at a signal such as Ctrl-C, or when the process ends, and stores the samples in
/// a folder. Throws input_error if the process cannot be sampled, or if there are too few samples.
attached attach(const attach_options& options);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LAUNCH_LAUNCH_HPP
