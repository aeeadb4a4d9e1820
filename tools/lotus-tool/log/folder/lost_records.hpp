// Records that a killed process left in its rings: includes them when reading, or moves them to the
// logs.
#ifndef LOTUS_TOOL_LOG_FOLDER_LOST_RECORDS_HPP
#define LOTUS_TOOL_LOG_FOLDER_LOST_RECORDS_HPP

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// Whether `name` (without folders) is that of a ring file.
bool is_ring_file_name(std::string_view name);

/// Adds the records in rings of dead processes to the logs of `dir` and of its loaders, as tails.
/// If a process died while it appended, the unfinished append at the end of the log is left out.
/// Changes nothing on disk.
/// @param files       all logs found; logs that a process had not created yet are added.
/// @param most_bytes  maximum size of these lines, which are kept in memory; the rest is left out
/// and reported.
void count_in_lost_records(const std::string& dir, std::string_view prefix, logs_by_folder& files,
                           diagnostic_log& diagnostics,
                           std::uint64_t most_bytes = std::uint64_t{2} << 30U);

struct recover_options {
  std::string dir;
};

/// Appends what dead processes left in `dir` and below it to its logs, exactly once. Returns 0, or
/// 1 if a log could not be written; then the rest can be recovered later.
int run_recover(const recover_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_LOST_RECORDS_HPP
