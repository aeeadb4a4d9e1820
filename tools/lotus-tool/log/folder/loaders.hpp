// Assigns folders to the loaders of a run, such as a training and a validation loader, and logs to
// the processes that consume batches.
#ifndef LOTUS_TOOL_LOG_FOLDER_LOADERS_HPP
#define LOTUS_TOOL_LOG_FOLDER_LOADERS_HPP

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// Finds out which elements of `runs` are folders of a loader, and sets the members info_dir,
/// loader and elsewhere of all elements. Removes elements without any files to read.
/// @param with_info  folders with information files. Processes write these files to a run
/// directory, but not to the folders of its loaders.
void join_loaders(std::vector<run_files>& runs, const std::set<std::string>& with_info);

/// Returns every run once, with the logs of all its loaders. Commands use this for results about
/// threads; they compute results about batches for each loader separately.
std::vector<run_files> whole_runs(const std::vector<run_files>& loaders);

/// Numbers the processes that consume batches, such as the ranks of a training on several GPUs.
/// Assigns each log to its process if the process consumes batches, otherwise to the nearest
/// ancestor process that consumes batches. If this is impossible for a log because the information
/// files do not describe its process, assigns all logs to one consumer.
void find_consumers(run_files& run);

/// The logs of one process that consumes batches, such as a rank, and the logs of its workers.
struct consumer_logs {
  run_files files;  ///< the logs, without the files about aggregated operations
  std::optional<std::uint64_t> rank;
};

/// Returns the logs of every consumer that find_consumers() has found in a run. Commands read the
/// logs of each consumer like a run.
std::vector<consumer_logs> logs_of_consumers(const run_files& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_LOADERS_HPP
