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

/// `compact`: one of all roles, before find_runs() has made a log for each of it.
enum class file_role : std::uint8_t { main, worker, unknown, beside, aggregated, compact };

/// One log, as much of it as a command shall see.
struct log_file {
  std::string path;
  file_role role = file_role::unknown;
  std::uint64_t number = 0;    ///< the number at the end of the name
  std::uint64_t bytes = 0;     ///< what counts of the file: a log may grow while it is read
  std::string tail;            ///< whole lines that belong behind those bytes but are not on disk
  std::uint32_t consumer = 0;  ///< of the processes that consume batches, the one it belongs to
  std::vector<older_part> older = {};  ///< what stood before these bytes, the oldest first
  bool compact = false;  ///< blocks, of which the records of this role are meant; the tail is text
  std::uint64_t first = 0;  ///< of those bytes the first that is read: a line's, or a block's
};

/// The logs of one directory: main files first, then workers, each in order of their number.
/// A loader with a name has a directory of its own in that of its run, and is a run of its own.
struct run_files {
  std::string dir;
  std::vector<log_file> files;
  std::string loader = {};                  ///< its name, decoded; "" of the default one
  std::string info_dir = {};                ///< where its processes tell of themselves
  std::set<std::string> earlier_info = {};  ///< names of files there of starts that are left out
  std::vector<log_file> beside = {};        ///< hidden files beside these logs, by number
  std::vector<log_file> elsewhere = {};     ///< those of the same run's other loaders
  std::vector<log_file> aggregated = {};    ///< of each process: aggregates/data/aggregate_file.hpp
  std::optional<read_window> window =
      {};  ///< only so much of it is read: log/window/log_window.hpp
};

/// Logs by their folder.
using logs_by_folder = std::map<std::string, std::vector<log_file>>;

/// Every run in `dir` and below it, in natural order ("b8" before "b16").
///
/// This is the one way by which commands obtain a run: what is to be counted in without standing
/// in a log (records in the rings of a killed process) is added here, as `tail`.
/// A file is a log when its name begins with `prefix` and ends in `_<number>`; "<log>.<n>" and
/// "<log>.<n>.gz" are older parts of it. A folder with logs in which no process tells of itself,
/// below one where some do, is a loader of that run.
/// Throws input_error when `dir` cannot be read or holds no log.
/// @param readings  how often the command will read them; only for the progress bar.
std::vector<run_files> find_runs(const std::string& dir, std::string_view prefix,
                                 diagnostic_log& diagnostics, unsigned readings = 1);

/// The log, or hidden file beside one, that a file of this name is, with none of its bytes; none
/// where it is not.
std::optional<log_file> log_named(const std::string& path, std::string_view prefix);

/// The runs that these logs are, in natural order of their folders.
/// @param with_info  the folders in which processes tell of themselves.
std::vector<run_files> runs_of(logs_by_folder&& logs, const std::set<std::string>& with_info);

/// An output that is an input, or would be taken for a log, would destroy or spoil what is read.
/// Throws usage_error. @param others  inputs that are no logs; "" is none.
void refuse_input_as_output(const std::string& output, const std::vector<run_files>& runs,
                            const std::vector<std::string>& others, std::string_view prefix);

/// True for the name (without folders) of a log: it begins with `prefix` and ends in `_<number>`.
bool is_log_name(std::string_view name, std::string_view prefix);

/// Natural order: digits compare as numbers. A strict weak ordering.
bool natural_less(std::string_view a, std::string_view b) noexcept;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_LOG_FILES_HPP
