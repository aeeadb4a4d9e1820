// The positions of a compact log's blocks, read from their headers.
#ifndef LOTUS_TOOL_LOG_COMPACT_BLOCK_INDEX_HPP
#define LOTUS_TOOL_LOG_COMPACT_BLOCK_INDEX_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "log/folder/log_files.hpp"
#include "log/window/log_times.hpp"

namespace lotus::tool {

struct indexed_block {
  std::uint64_t byte = 0;
  std::int64_t base_ns = 0;   ///< end of its first record
  std::int64_t first_ns = 0;  ///< the earliest start
  std::int64_t last_ns = 0;   ///< the latest end
  std::uint32_t bytes = 0;
  std::uint8_t roles = 0;
  bool anew = false;  ///< it can be read without the blocks before it
};

/// Indexes the blocks of a log on disk, without its older parts; reads only headers. Returns
/// nullopt if there is anything between the blocks: then a compact_reader has to search for them.
/// Throws input_error if the file cannot be opened.
std::optional<std::vector<indexed_block>> index_blocks(const log_file& file);

/// The times of the log; null if index_blocks() returns nullopt. Throws input_error likewise.
std::unique_ptr<log_times> times_of_blocks(const log_file& file);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_COMPACT_BLOCK_INDEX_HPP
