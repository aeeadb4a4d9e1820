// Samples the threads of a process that is already running.
#ifndef LOTUS_TOOL_LAUNCH_ATTACH_HPP
#define LOTUS_TOOL_LAUNCH_ATTACH_HPP

#include <sys/types.h>

#include <string>

namespace lotus::tool {

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

#endif  // LOTUS_TOOL_LAUNCH_ATTACH_HPP
