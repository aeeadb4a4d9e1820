// Distinguishes several executions ("starts") of a program that recorded into the same folder.
#ifndef LOTUS_TOOL_LOG_FOLDER_STARTS_HPP
#define LOTUS_TOOL_LOG_FOLDER_STARTS_HPP

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

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_STARTS_HPP
