// Reads the build ids of files.
#ifndef LOTUS_TOOL_BASE_FILES_BUILD_IDS_HPP
#define LOTUS_TOOL_BASE_FILES_BUILD_IDS_HPP

#include <string>

namespace lotus::tool {

/// Returns the build id of a program or library in hexadecimal digits; "" if it has none or cannot
/// be read.
std::string build_id_of(const std::string& path);

/// Returns whether the file at `path` can be the one with the build id `build`: it has this id, or
/// either id is unknown.
bool is_same_build(const std::string& path, const std::string& build);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_BUILD_IDS_HPP
