// Reads the bytes of a log that are on disk: those of its older parts, then those of the log
// itself.
#ifndef LOTUS_TOOL_LOG_STORED_BYTES_HPP
#define LOTUS_TOOL_LOG_STORED_BYTES_HPP

#include <cstddef>
#include <cstdint>
#include <memory>

#include "log/folder/log_files.hpp"
#include "log/folder/older_part.hpp"

namespace lotus::tool {

/// Reads the bytes of a log in the order in which they were written: from its oldest part to the
/// end of the log itself. Neither copyable nor movable. Not thread-safe.
class stored_bytes {
 public:
  /// @param file  must outlive the reader. Throws input_error if the file cannot be opened.
  explicit stored_bytes(const log_file& file);
  stored_bytes(const stored_bytes&) = delete;
  stored_bytes& operator=(const stored_bytes&) = delete;
  ~stored_bytes();

  /// Reads the next bytes; one call never reads from two parts. Returns the number of bytes; 0 at
  /// the end. Throws input_error if reading fails.
  std::size_t read(char* to, std::size_t room);
  /// Returns the number of older parts that were read to their end.
  std::size_t parts_done() const noexcept { return older_done_; }

 private:
  const log_file& file_;
  int descriptor_ = -1;
  std::size_t older_done_ = 0;  // number of parts in file_.older that were read to their end
  std::unique_ptr<older_part_reader> older_;
  std::uint64_t from_disk_;  // position in the log from which the next bytes are read
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_STORED_BYTES_HPP
