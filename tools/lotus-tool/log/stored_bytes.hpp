// What of a log stands on disk: its older parts, then as much of it as counts.
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
  /// Throws input_error when the file cannot be opened. `file` must outlive the reader.
  explicit stored_bytes(const log_file& file);
  stored_bytes(const stored_bytes&) = delete;
  stored_bytes& operator=(const stored_bytes&) = delete;
  ~stored_bytes();

  /// The next bytes; 0 at the end. Those of two parts never come at once. Throws input_error.
  std::size_t read(char* to, std::size_t room);
  /// How many older parts have been read to their end.
  std::size_t parts_done() const noexcept { return older_done_; }

 private:
  const log_file& file_;
  int descriptor_ = -1;
  std::size_t older_done_ = 0;  // of file_.older
  std::unique_ptr<older_part_reader> older_;
  std::uint64_t from_disk_;  // where the next bytes stand
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_STORED_BYTES_HPP
