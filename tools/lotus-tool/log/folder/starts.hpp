// Tells the starts of a program apart that recorded into the same folder.
#ifndef LOTUS_TOOL_LOG_FOLDER_STARTS_HPP
#define LOTUS_TOOL_LOG_FOLDER_STARTS_HPP

#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// Whether the logs of all starts in a folder are read together, as `--all-runs` asks for.
void read_all_starts(bool all) noexcept;

/// Leaves out of each run what earlier starts recorded, with a note. Processes belong to one start
/// if one started the other, if they were forked by the same program, if one `lotus-tool run`
/// started them, or if they recorded at the same time, as the ranks of a training do.
/// Where processes tell nothing about themselves, as in logs of Python's Lotus, all stays.
void keep_newest_start(std::vector<run_files>& runs, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_STARTS_HPP
