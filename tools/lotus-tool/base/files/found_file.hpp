// Opens files that were found in a run's directory. Refuses links and pipes, which other users may
// have put there. Do not use these functions for files that the user names.
#ifndef LOTUS_TOOL_BASE_FILES_FOUND_FILE_HPP
#define LOTUS_TOOL_BASE_FILES_FOUND_FILE_HPP

#include <cstdint>
#include <filesystem>
#include <string>

namespace lotus::tool {

/// Returns whether a directory entry is a regular file and not a link to one.
bool is_found_file(const std::filesystem::directory_entry& entry);

/// Opens a regular file for reading. Does not follow a link, and does not block if the file is a
/// pipe. Returns a descriptor that the caller owns. Throws input_error.
int open_found(const std::string& path);

/// Reads a whole file. Throws input_error if the file cannot be read or is larger than `max_bytes`.
std::string read_found(const std::string& path, std::uint64_t max_bytes = UINT64_MAX);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_FOUND_FILE_HPP
