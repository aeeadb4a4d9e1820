// Reads what callgrind counted, from its own profile or from callgrind_annotate.
#ifndef LOTUS_TOOL_MAPPING_READ_CALLGRIND_REPORTS_HPP
#define LOTUS_TOOL_MAPPING_READ_CALLGRIND_REPORTS_HPP

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lotus::tool {

/// Counters of functions, without what they call.
struct callgrind_profile {
  std::string operation;            ///< of the dump's client request; empty when there is none
  std::vector<std::string> events;  ///< "Ir", "Dr", …
  /// By function and module (its path); as many values as events.
  std::map<std::pair<std::string, std::string>, std::vector<std::uint64_t>> functions;
};

bool looks_like_callgrind(std::string_view text);
/// A callgrind.out file (format version 1, in the documentation of valgrind, "Callgrind Format
/// Specification"). Several parts in one file: each is one profile. Throws input_error.
std::vector<callgrind_profile> read_callgrind(const std::string& path, std::string_view text);

bool looks_like_callgrind_annotate(std::string_view text);
/// `callgrind_annotate --threshold=100`: own counts, with or without annotated sources behind them.
/// Throws input_error.
callgrind_profile read_callgrind_annotate(const std::string& path, std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_CALLGRIND_REPORTS_HPP
