// Files that were found in a run's folder, where others may have put links and pipes. What the user
// names is opened as it is.
#ifndef LOTUS_TOOL_BASE_FILES_FOUND_FILE_HPP
#define LOTUS_TOOL_BASE_FILES_FOUND_FILE_HPP

#include <cstdint>
#include <filesystem>
#include <string>

namespace lotus::tool {

/// Whether what was found is a regular file and not a link to one.
bool is_found_file(const std::filesystem::directory_entry& entry);

/// Opens a found file to read, through no link and without waiting for a pipe's other end. Returns
/// the descriptor, which the caller owns. Throws input_error.
int open_found(const std::string& path);

/// All of a found file. Throws input_error, also where it is larger than `most_bytes`.
std::string read_found(const std::string& path, std::uint64_t most_bytes = UINT64_MAX);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_FOUND_FILE_HPP
