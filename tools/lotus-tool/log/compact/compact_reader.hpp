// Finds complete blocks in the bytes of a compact log (the binary form of a log).
#ifndef LOTUS_TOOL_LOG_COMPACT_COMPACT_READER_HPP
#define LOTUS_TOOL_LOG_COMPACT_COMPACT_READER_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "log/folder/log_files.hpp"
#include "log/stored_bytes.hpp"
#include "lotus/format/compact_layout.hpp"

namespace lotus::tool {

/// Finds the blocks of one log, one after another. Not thread-safe.
class compact_reader {
 public:
  /// @param file  must outlive the reader. Throws input_error if the file cannot be opened.
  explicit compact_reader(const log_file& file);

  /// Returns the next complete block, valid until the next call; empty at the end of the log.
  /// Throws input_error if reading fails.
  std::string_view next(lotus::detail::compact_block_header& header);
  /// Whether the last call of next() skipped bytes that belong to no valid block. They were before
  /// the block that it returned or, if it returned none, at the end of the log.
  bool skipped() const noexcept { return skipped_; }
  std::uint64_t blocks() const noexcept { return blocks_; }

 private:
  bool fill();

  stored_bytes stored_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool skipped_ = false;
  std::uint64_t blocks_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_COMPACT_COMPACT_READER_HPP
