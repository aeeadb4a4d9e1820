// Finds the log files of runs.
#ifndef LOTUS_TOOL_LOG_FOLDER_LOG_FILES_HPP
#define LOTUS_TOOL_LOG_FOLDER_LOG_FILES_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/older_part.hpp"
#include "log/window/time_window.hpp"

namespace lotus::tool {

inline constexpr std::string_view default_prefix = "lotustrace_log";

/// `compact`: a file with all roles, before find_runs() has split it into one log per role.
enum class file_role : std::uint8_t { main, worker, unknown, side, aggregated, compact };

/// The part of one log that a command reads.
struct log_file {
  std::string path;
  file_role role = file_role::unknown;
  std::uint64_t number = 0;    ///< the number at the end of the name
  std::uint64_t bytes = 0;     ///< how much of the file counts: a log may grow meanwhile
  std::string tail;            ///< whole lines to be read after those bytes, but not on disk
  std::uint32_t consumer = 0;  ///< index of the consumer process that it belongs to
  std::vector<older_part> older = {};  ///< earlier contents of this log, the oldest first
  bool compact = false;     ///< blocks, of which this role's records are read; the tail is text
  std::uint64_t first = 0;  ///< the first byte that is read, where a line or block begins
};

/// The logs of one directory: main files first, then workers, each sorted by number. A named loader
/// has a folder of its own in its run's directory, and counts as a run of its own.
struct run_files {
  std::string dir;
  std::vector<log_file> files;
  std::string loader = {};                  ///< its decoded name; "" for the default loader
  std::string info_dir = {};                ///< folder of its processes' information files
  std::set<std::string> earlier_info = {};  ///< names of files there from starts that are left out
  std::vector<log_file> beside = {};        ///< side logs of these logs, by number
  std::vector<log_file> elsewhere = {};     ///< side logs of the same run's other loaders
  std::vector<log_file> aggregated = {};    ///< one per process: aggregates/data/aggregate_file.hpp
  std::optional<read_window> window =
      {};  ///< if only a part of it is read: log/window/log_window.hpp
};

/// Logs, by folder.
using logs_by_folder = std::map<std::string, std::vector<log_file>>;

/// Finds every run in `dir` and below it, in natural order ("b8" before "b16").
///
/// All commands obtain runs through this function. Records that are not in the logs (but in the
/// rings of a killed process) are added here, as `tail`. A file is a log if its name begins with
/// `prefix` and ends in `_<number>`; "<log>.<n>" and "<log>.<n>.gz" are older parts of it. A folder
/// with logs but without information files is a loader of a run if the folder above it has such
/// files.
/// Throws input_error if `dir` cannot be read or contains no log.
/// @param readings  how often the command will read the runs; only for the progress bar.
std::vector<run_files> find_runs(const std::string& dir, std::string_view prefix,
                                 diagnostic_log& diagnostics, unsigned readings = 1);

/// The log or hidden file with this name, without any of its bytes; nullopt if the name is neither.
std::optional<log_file> log_named(const std::string& path, std::string_view prefix);

/// Groups logs into runs, in natural order of their folders.
/// @param with_info  the folders that contain information files.
std::vector<run_files> runs_of(logs_by_folder&& logs, const std::set<std::string>& with_info);

/// Refuses an output that is also an input, or that would be mistaken for a log. Throws
/// usage_error.
/// @param others  inputs that are not logs; "" stands for none.
void refuse_input_as_output(const std::string& output, const std::vector<run_files>& runs,
                            const std::vector<std::string>& others, std::string_view prefix);

/// Whether `name` (without folders) is a log's: begins with `prefix` and ends in `_<number>`.
bool is_log_name(std::string_view name, std::string_view prefix);

/// Natural order: digits compare as numbers. A strict weak ordering.
bool natural_less(std::string_view a, std::string_view b) noexcept;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_LOG_FILES_HPP
