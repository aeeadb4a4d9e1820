// Determines where a program that a command starts should record, and where it has recorded.
#ifndef LOTUS_TOOL_LOG_FOLDER_NEW_RUN_HPP
#define LOTUS_TOOL_LOG_FOLDER_NEW_RUN_HPP

#include <string>
#include <utility>
#include <vector>

namespace lotus::tool {

/// The place for the logs of a program that is about to be started.
struct new_run {
  std::string dir;
  std::string prefix;
  /// Variables to set in the program's environment.
  std::vector<std::pair<std::string, std::string>> environment;
};

/// Returns the first of NAME, NAME-2, NAME-3 and so on that does not exist or is an empty folder. A
/// new run needs such a folder, because commands would read two runs in one folder as one run.
std::string unused_folder(const std::string& name);

/// Returns the place for a program's logs.
/// @param dir  directory for the logs. If empty, the value of LOTUS_LOG_FILE is used; without this
/// variable, the first of run/, run-2/, ... that is empty or new.
new_run place_for_logs(const std::string& dir);

/// A temporary file to which every recording appends the place of its logs when it starts.
class start_list {
 public:
  /// Creates the file. Throws input_error if it cannot be created.
  start_list();
  start_list(const start_list&) = delete;
  start_list& operator=(const start_list&) = delete;
  ~start_list();

  const std::string& path() const noexcept { return path_; }
  /// Returns each place once, as directory and prefix, the most recent place last. Paths below the
  /// current directory are relative.
  std::vector<std::pair<std::string, std::string>> places() const;

 private:
  std::string path_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_NEW_RUN_HPP
