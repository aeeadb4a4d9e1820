// Samples the threads of a process that runs already.
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

/// What sampling of a running process will do, and has done.
struct attached {
  std::string dir;          ///< folder of the samples
  std::string name;         ///< name of the process
  bool ended = false;       ///< whether the process ended before the sampling
  std::string not_sampled;  ///< why a part of the sampling was not possible; "" if all was
};

/// Returns the name of a process that can be sampled. Throws input_error, with the reason, if it
/// cannot: it does not exist, is this process, or this user has no right to look at it.
std::string sampled_name(pid_t pid);

/// Samples a process and what it has started and starts, from outside: nothing is added to it, and
/// it is never stopped. Ends after options.seconds, at a signal such as Ctrl-C, and with the
/// process. Stores the samples. Throws input_error if the process cannot be sampled, or too little
/// was seen.
attached attach(const attach_options& options);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LAUNCH_ATTACH_HPP
