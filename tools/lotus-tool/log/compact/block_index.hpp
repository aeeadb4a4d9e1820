// Where the blocks of a compact log stand, by their headers.
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
  std::int64_t base_ns = 0;   ///< when its first record was over
  std::int64_t first_ns = 0;  ///< the earliest start
  std::int64_t last_ns = 0;   ///< the latest end
  std::uint32_t bytes = 0;
  std::uint8_t roles = 0;
  bool anew = false;  ///< it can be read without those before it
};

/// The blocks of what a log has on disk, without its older parts; only headers are read. None where
/// something stands between them that is no block: then a compact_reader has to look for them.
/// Throws input_error when the file cannot be opened.
std::optional<std::vector<indexed_block>> index_blocks(const log_file& file);

/// The times of the log; null where its blocks cannot be told apart. Throws likewise.
std::unique_ptr<log_times> times_of_blocks(const log_file& file);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_COMPACT_BLOCK_INDEX_HPP
