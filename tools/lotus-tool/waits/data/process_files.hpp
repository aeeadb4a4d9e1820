// Reads the text files that processes write about their waiting threads.
#ifndef LOTUS_TOOL_WAITS_DATA_PROCESS_FILES_HPP
#define LOTUS_TOOL_WAITS_DATA_PROCESS_FILES_HPP

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// A file in which a process recorded waits or stacks. If the size of these files is limited, a
/// process may have two; then the older one comes first.
struct process_file {
  std::string path;
  std::string ending;  ///< common end of the names of this file and of the information file
};

/// Returns the files of a run's processes whose names begin with `start`.
std::vector<process_file> files_of_processes(const run_files& run, std::string_view start,
                                             diagnostic_log& diagnostics);

/// Calls `take_line` for every complete line of a file; `take_line` must return whether the line is
/// valid. Reports the number of lines that are not valid. Throws input_error.
/// @param damage  beginning of the report, such as "not a wait sample; ".
void read_whole_lines(const std::string& path, const std::string& damage,
                      diagnostic_log& diagnostics,
                      const std::function<bool(std::string_view line)>& take_line);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_DATA_PROCESS_FILES_HPP
