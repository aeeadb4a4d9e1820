// Reads the text files that processes write about their waiting threads.
#ifndef LOTUS_TOOL_WAITS_DATA_PROCESS_FILES_HPP
#define LOTUS_TOOL_WAITS_DATA_PROCESS_FILES_HPP

#include <charconv>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
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

/// Removes the text before the first `mark`, and this mark, from the beginning of `text`; removes
/// all of `text` if it contains no mark. Returns the removed text without the mark.
inline std::string_view take(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

/// Reads a number that is not negative. Returns false if `text` is anything else.
template <class Number>
bool read_number(std::string_view text, Number& value, int base = 10) {
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc{} && behind == end && value >= 0;
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_DATA_PROCESS_FILES_HPP
