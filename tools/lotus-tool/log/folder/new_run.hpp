// Chooses the folder for the logs of a program before the program is started, and finds out
// afterwards in which folders the program has recorded.
#ifndef LOTUS_TOOL_LOG_FOLDER_NEW_RUN_HPP
#define LOTUS_TOOL_LOG_FOLDER_NEW_RUN_HPP

#include <string>
#include <utility>
#include <vector>

namespace lotus::tool {

/// Where a program that is about to be started stores its logs.
struct new_run {
  std::string dir;
  std::string prefix;
  /// Variables to set in the program's environment.
  std::vector<std::pair<std::string, std::string>> environment;
};

/// Returns the first of NAME, NAME-2, NAME-3 and so on that does not exist or is an empty folder. A
/// new run needs such a folder, because commands would read two runs in one folder as one run.
std::string unused_folder(const std::string& name);

/// Chooses where a program stores its logs.
/// @param dir  directory for the logs. If empty, the value of LOTUS_LOG_FILE is used; without this
/// variable, the first of run/, run-2/, ... that is empty or new.
new_run place_for_logs(const std::string& dir);

/// A temporary file to which each recording of the started program adds the directory and prefix of
/// its logs.
class start_list {
 public:
  /// Creates the file. Throws input_error if it cannot be created.
  start_list();
  start_list(const start_list&) = delete;
  start_list& operator=(const start_list&) = delete;
  ~start_list();

  const std::string& path() const noexcept { return path_; }
  /// Returns the directory and prefix of each recording's logs. A pair that several recordings used
  /// occurs once; the most recent is the last. Paths below the current directory are relative.
  std::vector<std::pair<std::string, std::string>> places() const;

 private:
  std::string path_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_NEW_RUN_HPP
