// Reads the bytes of a log on disk: its older parts, then its counted bytes.
#ifndef LOTUS_TOOL_LOG_STORED_BYTES_HPP
#define LOTUS_TOOL_LOG_STORED_BYTES_HPP

#include <cstddef>
#include <cstdint>
#include <memory>

#include "log/folder/log_files.hpp"
#include "log/folder/older_part.hpp"

namespace lotus::tool {

/// Neither copyable nor movable. Not thread-safe.
class stored_bytes {
 public:
  /// Throws input_error if the file cannot be opened. `file` must outlive the reader.
  explicit stored_bytes(const log_file& file);
  stored_bytes(const stored_bytes&) = delete;
  stored_bytes& operator=(const stored_bytes&) = delete;
  ~stored_bytes();

  /// Reads the next bytes, never of two parts at once; returns 0 at the end. Throws input_error.
  std::size_t read(char* to, std::size_t room);
  /// Number of older parts that were read to their end.
  std::size_t parts_done() const noexcept { return older_done_; }

 private:
  const log_file& file_;
  int descriptor_ = -1;
  std::size_t older_done_ = 0;  // number of files in file_.older
  std::unique_ptr<older_part_reader> older_;
  std::uint64_t from_disk_;  // position of the next bytes
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_STORED_BYTES_HPP
