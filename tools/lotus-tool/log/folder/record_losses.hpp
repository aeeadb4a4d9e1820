// Reports records that the processes of a run dropped or lost.
#ifndef LOTUS_TOOL_LOG_FOLDER_RECORD_LOSSES_HPP
#define LOTUS_TOOL_LOG_FOLDER_RECORD_LOSSES_HPP

#include <string>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"

namespace lotus::tool {

/// Returns how many records the processes of a run stored, dropped and lost: as their information
/// files say and, for killed processes that were not recovered yet, as their ring files say.
record_counts counted_records(const run_files& run, const run_processes& processes);

/// Reports dropped, lost and deleted records of a run, each in one line, and whether the
/// information files, which contain these numbers, could not be read completely.
void report_losses(const run_files& run, diagnostic_log& diagnostics);

/// Appends the numbers of lost records that only the ring files of a run contain to copies of the
/// run's information files.
/// @param to  folder with the copies. A missing file is created.
void add_lost_to_copies(const run_files& run, const std::string& to);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_RECORD_LOSSES_HPP
