// Names as people wrote them.
#ifndef LOTUS_TOOL_LOG_SHOWN_NAME_HPP
#define LOTUS_TOOL_LOG_SHOWN_NAME_HPP

#include <string>

namespace lotus::tool {

/// "Loader" of "SLoader": the S is the logs' way to mark a name. Everything for people tells names
/// so; JSON and CSV of `stats` and `compare` have them as the logs have.
inline std::string shown_name(const std::string& logged) {
  return logged.compare(0, 1, "S") == 0 ? logged.substr(1) : logged;
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_SHOWN_NAME_HPP
