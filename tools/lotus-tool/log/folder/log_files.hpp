// Finds the log files of runs.
#ifndef LOTUS_TOOL_LOG_FOLDER_LOG_FILES_HPP
#define LOTUS_TOOL_LOG_FOLDER_LOG_FILES_HPP

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/older_part.hpp"
#include "log/window/time_window.hpp"
#include "log/window/wanted_part.hpp"

namespace lotus::tool {

struct clock_step;

inline constexpr std::string_view default_prefix = "lotustrace_log";

/// What a file contains. A `compact` file is in a binary format and has the records of several
/// roles; find_runs() replaces it by one log for each role.
enum class file_role : std::uint8_t { main, worker, unknown, side, aggregated, compact };

/// One log, and the part of it that a command reads.
struct log_file {
  std::string path;
  file_role role = file_role::unknown;
  std::uint64_t number = 0;  ///< number at the end of the log's name, usually a thread id
  std::uint64_t bytes = 0;   ///< position on disk where reading ends; the log may grow beyond it
  /// Complete lines that the file on disk does not contain, because the process died before it
  /// wrote them; they come from its rings. Readers get them after the bytes on disk.
  std::string tail;
  std::uint32_t consumer = 0;          ///< index of the consumer process to which the log belongs
  std::vector<older_part> older = {};  ///< older parts of this log, the oldest first
  /// Whether the file on disk is a compact log, from which only the records of this role are read.
  bool compact = false;
  std::uint64_t first = 0;  ///< position on disk where reading begins; start of a line or block
  /// If not 0, only the file with this inode is read: another one may have got its name meanwhile.
  std::uint64_t inode = 0;
  /// If the clock was set during the run, how; readers then correct all times. read_run() finds it
  /// out when it first reads the run, and tells everyone who reads the same files later.
  mutable std::shared_ptr<const clock_step> clock = {};
};

/// The logs of one directory: main logs first, then workers, each sorted by number. A named loader
/// has a subfolder of the run's directory and is represented by a run_files of its own.
struct run_files {
  std::string dir;
  std::vector<log_file> files;
  std::string loader = {};  ///< decoded name of the loader; "" for the default loader
  /// Folder with the information files of the run's processes.
  std::string info_dir = {};
  /// Names of the information files in info_dir that are not read, because an earlier start of the
  /// program wrote them.
  std::set<std::string> earlier_info = {};
  std::vector<log_file> side_files = {};  ///< side logs of the threads in `files`, sorted by number
  std::vector<log_file> elsewhere = {};   ///< side logs of the other loaders of the same run
  /// Files with the statistics of aggregated operations, one file per process.
  std::vector<log_file> aggregated = {};
  /// How many records were only in the memory of killed processes, as their ring files in info_dir
  /// say: by the ending that the names of a process's ring file and information file share.
  std::map<std::string, std::uint64_t> lost_in_rings = {};
  /// The time range of the run that is read; nullopt if the whole run is read. See
  /// log/window/log_window.hpp.
  std::optional<read_window> window = {};
  /// The part of the run that the user requested; nullopt: the whole run.
  std::optional<wanted_part> wanted = {};
  /// The times of this part: records that begin before it or end after it are left out. read_run()
  /// finds them out when it first reads the run.
  mutable std::optional<time_window> part = {};

  bool is_part() const noexcept { return window || part; }
  bool empty() const noexcept { return files.empty() && side_files.empty() && aggregated.empty(); }
};

/// The logs of each folder, by the folder's path.
using logs_by_folder = std::map<std::string, std::vector<log_file>>;

/// Finds every run in `dir` and below it, in natural order ("b8" before "b16").
///
/// All commands find runs with this function. Records that are still in the rings of a killed
/// process are added to their logs as `tail`. Logs are reduced to part_to_read() if they are large.
/// A file is a log if its name begins with `prefix` and ends in `_<number>`; "<log>.<n>" and
/// "<log>.<n>.gz" are older parts of it. A folder with logs but without information files is a
/// loader of a run if its parent folder has information files. Reports dropped and lost records of
/// each run. Throws input_error if `dir` cannot be read or contains no log.
/// @param readings  how many times the command will read the runs. Only the progress bar needs this
/// number.
std::vector<run_files> find_runs(const std::string& dir, std::string_view prefix,
                                 diagnostic_log& diagnostics, unsigned readings = 1);

/// What find_live_runs() finds.
struct live_files {
  std::vector<run_files> runs;
  std::set<std::string> with_info;  ///< folders that contain information files
};

/// Like find_runs(), while the runs may be recorded: records in rings come from `read_rings`, all
/// starts of a program count, and nothing is reported. Reads older parts of a log only as far as
/// `max_log_bytes` of it allow. Throws input_error if `dir` cannot be read.
/// @param read_rings  called with each folder with ring files; may change its logs and add others.
live_files find_live_runs(
    const std::string& dir, std::string_view prefix, std::uint64_t max_log_bytes,
    const std::function<void(const std::string& dir, logs_by_folder& logs)>& read_rings);

/// Returns a log_file for the file at `path` if its name is that of a log or of a hidden file, such
/// as a side log, with this prefix; otherwise nullopt. Does not open the file: `bytes` is 0.
std::optional<log_file> log_named(const std::string& path, std::string_view prefix);

/// Groups logs into runs, in natural order of their folders.
/// @param with_info  folders that contain information files.
std::vector<run_files> runs_of(logs_by_folder&& logs, const std::set<std::string>& with_info);

/// Throws usage_error if the output file is also an input, or if its name has the form of a log's
/// name.
/// @param others  paths of inputs that are not logs; an empty path is ignored.
void refuse_input_as_output(const std::string& output, const std::vector<run_files>& runs,
                            const std::vector<std::string>& others, std::string_view prefix);

/// Whether `name` (without folders) is the name of a log: it begins with `prefix` and ends in
/// `_<number>`.
bool is_log_name(std::string_view name, std::string_view prefix);

/// Whether `a` comes before `b` if digits in a row compare as one number, so that "b8" is before
/// "b16". This is a strict weak ordering.
bool natural_less(std::string_view a, std::string_view b) noexcept;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_LOG_FILES_HPP
