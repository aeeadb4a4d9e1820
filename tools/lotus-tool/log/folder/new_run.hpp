// Where a program that a command starts shall record, and where it did.
#ifndef LOTUS_TOOL_LOG_FOLDER_NEW_RUN_HPP
#define LOTUS_TOOL_LOG_FOLDER_NEW_RUN_HPP

#include <string>
#include <utility>
#include <vector>

namespace lotus::tool {

/// The logs of a program that is started now.
struct new_run {
  std::string dir;
  std::string prefix;
  std::vector<std::pair<std::string, std::string>> environment;  ///< that the program needs
};

/// @param dir  of the logs; empty: where LOTUS_LOG_FILE says, else run/, or run-2/, ... where there
///             is something in it already.
new_run place_for_logs(const std::string& dir);

/// A file to which every start of a recording appends where its logs are. Removed at the end.
class start_list {
 public:
  /// Throws input_error where no file can be made.
  start_list();
  start_list(const start_list&) = delete;
  start_list& operator=(const start_list&) = delete;
  ~start_list();

  const std::string& path() const noexcept { return path_; }
  /// Directory and prefix of each place, the last one last, none twice. Paths below the current
  /// directory are relative to it.
  std::vector<std::pair<std::string, std::string>> places() const;

 private:
  std::string path_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_NEW_RUN_HPP
