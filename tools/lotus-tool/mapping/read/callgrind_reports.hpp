// Reads callgrind's counts from its own profile or from the output of callgrind_annotate.
#ifndef LOTUS_TOOL_MAPPING_READ_CALLGRIND_REPORTS_HPP
#define LOTUS_TOOL_MAPPING_READ_CALLGRIND_REPORTS_HPP

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lotus::tool {

/// Counts of functions, without those of the functions that they call.
struct callgrind_profile {
  std::string operation;            ///< from the dump's client request; empty if there is none
  std::vector<std::string> events;  ///< "Ir", "Dr", …
  /// By function and module path; as many values as events.
  std::map<std::pair<std::string, std::string>, std::vector<std::uint64_t>> functions;
};

bool looks_like_callgrind(std::string_view text);
/// Reads a callgrind.out file (format version 1, see "Callgrind Format Specification" in valgrind's
/// documentation). Each part of the file becomes one profile. Throws input_error.
std::vector<callgrind_profile> read_callgrind(const std::string& path, std::string_view text);

bool looks_like_callgrind_annotate(std::string_view text);
/// Reads the output of `callgrind_annotate --threshold=100`: counts without callees, followed by
/// annotated sources or not. Throws input_error.
callgrind_profile read_callgrind_annotate(const std::string& path, std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_CALLGRIND_REPORTS_HPP
