// Distinguishes several executions ("starts") of a program that recorded into the same folder.
#ifndef LOTUS_TOOL_LOG_FOLDER_STARTS_HPP
#define LOTUS_TOOL_LOG_FOLDER_STARTS_HPP

#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// Sets whether commands read the logs of all starts in a folder together (`true`, for the option
/// `--all-runs`) or only those of the newest start.
void read_all_starts(bool all) noexcept;

/// If a program was started several times with the same folder, leaves only the logs of the newest
/// start in `runs`, and prints a note; deletes nothing on disk. Processes belong to the same start
/// if one started the other, if the same process forked them, if one `lotus-tool run` started them,
/// or if they recorded at the same time, like the ranks of a distributed training. Changes nothing
/// if there are no information files, as in runs of the original Lotus for PyTorch.
void keep_newest_start(std::vector<run_files>& runs, diagnostic_log& diagnostics);

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

#endif  // LOTUS_TOOL_LOG_FOLDER_STARTS_HPP
