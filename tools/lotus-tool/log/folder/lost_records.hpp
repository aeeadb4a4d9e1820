// Records that a killed process left in its rings: counted in, and put into the logs.
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

/// True for the name (without folders) of a ring file.
bool is_ring_file_name(std::string_view name);

/// Adds to the logs of `dir` and of its loaders, as tails, what rings of dead processes still hold;
/// where a process died while it appended, the half append at the end of the log is left out.
/// Changes nothing on disk.
/// @param files       all that were found; those a process had not made yet are added.
/// @param most_bytes  of such lines, which are held in memory; what is more is left out, and told.
void count_in_lost_records(const std::string& dir, std::string_view prefix, logs_by_folder& files,
                           diagnostic_log& diagnostics,
                           std::uint64_t most_bytes = std::uint64_t{2} << 30U);

struct recover_options {
  std::string dir;
};

/// Appends what dead processes left in `dir` and below to its logs, exactly once.
/// Returns 0; 1 when a log could not be written, and then what is left can be recovered later.
int run_recover(const recover_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_LOST_RECORDS_HPP
