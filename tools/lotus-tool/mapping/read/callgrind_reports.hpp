// Reads callgrind's counts from its profile files.
#ifndef LOTUS_TOOL_MAPPING_READ_CALLGRIND_REPORTS_HPP
#define LOTUS_TOOL_MAPPING_READ_CALLGRIND_REPORTS_HPP

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lotus::tool {

/// Counts for each function, not including the functions that it calls.
struct callgrind_profile {
  /// The operation's name, which the program gave when it asked callgrind to write the counts; ""
  /// if there is none.
  std::string operation;
  std::vector<std::string> events;  ///< names of the counted events, such as "Ir" and "Dr"
  /// Counts by function and path of the module; one count for each event.
  std::map<std::pair<std::string, std::string>, std::vector<std::uint64_t>> functions;
};

bool looks_like_callgrind(std::string_view text);
/// Reads a callgrind.out file (format version 1, see "Callgrind Format Specification" in valgrind's
/// documentation). Returns a profile for each part of the file. Throws input_error.
std::vector<callgrind_profile> read_callgrind(const std::string& path, std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_CALLGRIND_REPORTS_HPP
