// Determines where a program that a command starts should record, and where it did.
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
  std::vector<std::pair<std::string, std::string>> environment;  ///< for the program
};

/// @param dir  of the logs; empty: the place in LOTUS_LOG_FILE, else run/, or run-2/, ... if that
/// is not empty.
new_run place_for_logs(const std::string& dir);

/// A file to which every start of a recording appends the place of its logs. Removed at the end.
class start_list {
 public:
  /// Throws input_error if no file can be created.
  start_list();
  start_list(const start_list&) = delete;
  start_list& operator=(const start_list&) = delete;
  ~start_list();

  const std::string& path() const noexcept { return path_; }
  /// Directory and prefix of each place without duplicates, the most recent one last. Paths below
  /// the current directory are relative to it.
  std::vector<std::pair<std::string, std::string>> places() const;

 private:
  std::string path_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_NEW_RUN_HPP
