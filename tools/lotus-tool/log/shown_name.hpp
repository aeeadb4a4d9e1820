// Converts names in logs to the names that the program uses.
#ifndef LOTUS_TOOL_LOG_SHOWN_NAME_HPP
#define LOTUS_TOOL_LOG_SHOWN_NAME_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// Returns "Loader" for "SLoader", because logs put an S before each name. Output for people shows
/// names without the S; the JSON and CSV output of `stats` and `compare` keeps it.
inline std::string shown_name(std::string_view logged) {
  return std::string(logged.substr(logged.substr(0, 1) == "S" ? 1 : 0));
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_SHOWN_NAME_HPP
