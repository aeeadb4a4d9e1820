// Names as people wrote them.
#ifndef LOTUS_TOOL_LOG_SHOWN_NAME_HPP
#define LOTUS_TOOL_LOG_SHOWN_NAME_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// "Loader" of "SLoader": the S is the logs' way to mark a name. Everything for people tells names
/// so; JSON and CSV of `stats` and `compare` have them as the logs have.
inline std::string shown_name(std::string_view logged) {
  return std::string(logged.substr(logged.substr(0, 1) == "S" ? 1 : 0));
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_SHOWN_NAME_HPP
