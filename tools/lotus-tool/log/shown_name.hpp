// Converts names in logs to names as users wrote them.
#ifndef LOTUS_TOOL_LOG_SHOWN_NAME_HPP
#define LOTUS_TOOL_LOG_SHOWN_NAME_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// Returns "Loader" for "SLoader", because logs put an S before each name. All output for people
/// shows names without the S; JSON and CSV of `stats` and `compare` keep it.
inline std::string shown_name(std::string_view logged) {
  return std::string(logged.substr(logged.substr(0, 1) == "S" ? 1 : 0));
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_SHOWN_NAME_HPP
