// The loaders of a run, such as one to train and one to validate, each in a folder of its own.
#ifndef LOTUS_TOOL_LOG_FOLDER_LOADERS_HPP
#define LOTUS_TOOL_LOG_FOLDER_LOADERS_HPP

#include <set>
#include <string>
#include <vector>

#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// Tells of every run which loader of which run it is, and where the hidden files of the other
/// loaders lie. Of a run some of whose loaders have logs, those without are left out then: what
/// lies beside them is told with the others.
/// @param with_info  the folders in which processes tell of themselves.
void join_loaders(std::vector<run_files>& runs, const std::set<std::string>& with_info);

/// Every run once, with the logs of all its loaders: for what is of threads, and not of batches.
std::vector<run_files> whole_runs(const std::vector<run_files>& loaders);

/// Numbers the processes that consume batches, such as the ranks of a training on several GPUs, and
/// gives each log that of its process or of the one which forked that. Where the processes are not
/// known, all logs are taken for those of one.
void find_consumers(run_files& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_LOADERS_HPP
