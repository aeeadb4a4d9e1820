// Recovers the records that a killed process left in its rings. Commands that read logs add the
// lines of these records in memory; `lotus-tool recover` appends them to the logs on disk.
#ifndef LOTUS_TOOL_LOG_FOLDER_LOST_RECORDS_HPP
#define LOTUS_TOOL_LOG_FOLDER_LOST_RECORDS_HPP

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"

namespace lotus::tool {

/// Whether `name` (without folders) is the name of a ring file.
bool is_ring_file_name(std::string_view name);

/// Adds the records in rings of dead processes to the logs of `dir` and of its loaders, as
/// log_file::tail. If a process died while it appended to a log, the unfinished lines at the end of
/// the log are not read. Changes nothing on disk.
/// Returns how many records were only in the memory of dead processes and are lost, by the endings
/// of the names of the ring files.
/// @param files  all logs that were found; logs that a dead process had not created yet are added.
/// @param max_bytes  maximum size of all tails in memory. Records that would exceed it are not
/// read, and a message reports this.
std::map<std::string, std::uint64_t> count_in_lost_records(
    const std::string& dir, std::string_view prefix, logs_by_folder& files,
    diagnostic_log& diagnostics, std::uint64_t max_bytes = std::uint64_t{2} << 30U);

struct recover_options {
  std::string dir;
};

/// Finds the rings of dead processes in the directory and below it, and appends each of their
/// records to its log exactly once. Returns 0, or 1 if a log could not be written; call it again
/// later to append the remaining records.
int run_recover(const recover_options& options, std::ostream& out, std::ostream& err);

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

#endif  // LOTUS_TOOL_LOG_FOLDER_LOST_RECORDS_HPP
