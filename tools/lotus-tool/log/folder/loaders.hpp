// The loaders of a run, such as one for training and one for validation, each in its own folder.
#ifndef LOTUS_TOOL_LOG_FOLDER_LOADERS_HPP
#define LOTUS_TOOL_LOG_FOLDER_LOADERS_HPP

#include <set>
#include <string>
#include <vector>

#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// Determines for every run which loader of which run it is, and where the hidden files of the
/// other loaders are. Removes runs without any logs or hidden files.
/// @param with_info  the folders that contain information files.
void join_loaders(std::vector<run_files>& runs, const std::set<std::string>& with_info);

/// Every run once, with the logs of all its loaders: for results about threads rather than batches.
std::vector<run_files> whole_runs(const std::vector<run_files>& loaders);

/// Numbers the processes that consume batches, such as the ranks of a training on several GPUs, and
/// assigns each log to its own process or to the ancestor that consumes. If the processes are not
/// known, all logs are assigned to one.
void find_consumers(run_files& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_LOADERS_HPP
