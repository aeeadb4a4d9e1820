// Lists the blocks of a compact log (the binary form of a log) and their positions. Reads only the
// headers of the blocks.
#ifndef LOTUS_TOOL_LOG_COMPACT_BLOCK_INDEX_HPP
#define LOTUS_TOOL_LOG_COMPACT_BLOCK_INDEX_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "log/window/time_window.hpp"
#include "lotus/format/record_kinds.hpp"

namespace lotus::tool {

struct indexed_block {
  std::uint64_t byte = 0;
  std::int64_t base_ns = 0;   ///< end of the block's first record, in ns since 1970
  std::int64_t first_ns = 0;  ///< earliest start of a record in the block, in ns since 1970
  std::int64_t last_ns = 0;   ///< latest end of a record in the block, in ns since 1970
  std::uint32_t bytes = 0;
  std::uint8_t roles = 0;
  bool anew = false;  ///< whether the block can be read without the blocks before it
};

/// Lists the blocks in the file of a compact log. Older parts of the log are in other files and are
/// not listed. Returns nullopt if there are damaged bytes between blocks; the caller can then use a
/// compact_reader, which searches for blocks. Throws input_error if the file cannot be opened.
std::optional<std::vector<indexed_block>> index_blocks(const log_file& file);

/// Returns an object that maps times to positions in the file of a compact log; null if
/// index_blocks() returns nullopt for this file. Throws input_error if the file cannot be opened.
std::unique_ptr<log_times> times_of_blocks(const log_file& file);

constexpr file_role file_role_of(lotus::detail::log_role role) noexcept {
  return role == lotus::detail::log_role::main     ? file_role::main
         : role == lotus::detail::log_role::worker ? file_role::worker
                                                   : file_role::side;
}

/// A compact log has the records of up to three roles: main, worker and side log. Replaces each
/// compact log in `files` by one log_file for each role that it has; all of them read the same file
/// on disk. If a process died, find_runs() has added the records in its rings as tails of text logs
/// that may not exist on disk. This function moves these tails to the new logs. Throws input_error.
/// @param files  the logs of one folder.
void take_compact_apart(std::vector<log_file>& files, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_COMPACT_BLOCK_INDEX_HPP
