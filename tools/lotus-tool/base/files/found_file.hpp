// Opens files found in a run's directory, where other users may have put links and pipes. Files
// that the user names are opened without these precautions.
#ifndef LOTUS_TOOL_BASE_FILES_FOUND_FILE_HPP
#define LOTUS_TOOL_BASE_FILES_FOUND_FILE_HPP

#include <cstdint>
#include <filesystem>
#include <string>

namespace lotus::tool {

/// Whether a directory entry is a regular file and not a link to one.
bool is_found_file(const std::filesystem::directory_entry& entry);

/// Opens such a file for reading, without following a link or waiting for the other end of a pipe.
/// Returns a descriptor that the caller owns. Throws input_error.
int open_found(const std::string& path);

/// Reads a whole file. Throws input_error, also if it is larger than `most_bytes`.
std::string read_found(const std::string& path, std::uint64_t most_bytes = UINT64_MAX);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_FOUND_FILE_HPP
