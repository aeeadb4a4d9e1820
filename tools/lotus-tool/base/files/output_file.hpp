// Provides an output file that appears under its name only when it is complete, so that other
// processes never read an incomplete file.
#ifndef LOTUS_TOOL_BASE_FILES_OUTPUT_FILE_HPP
#define LOTUS_TOOL_BASE_FILES_OUTPUT_FILE_HPP

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/block_queue.hpp"
#include "base/files/unfinished.hpp"

namespace lotus::tool {

/// Compresses data with zlib. Defined in the source file, which includes zlib.
class gzip_stream;

struct new_output {
  int descriptor = -1;  ///< descriptor of the file, to be closed by the caller
  /// Temporary path to rename to the path of the output; empty if the output is written directly.
  std::string incomplete;
};

/// Creates a temporary file next to `path`. The caller renames the file to `path` before closing
/// the descriptor. Removes temporary files that killed processes have left for this path (see
/// make_unfinished_file()). A symbolic link is replaced and not followed, so that users who can
/// create links cannot choose which file is overwritten. Devices, pipes, and descriptors such as
/// /dev/stdout or /dev/fd/N are written directly. Throws input_error.
new_output open_new_output(const std::string& path, leftovers left = leftovers::possible);

/// Writes to a temporary file next to the target and renames it when it is complete, so that
/// readers never see an incomplete output. Without commit() the target stays unchanged. See
/// open_new_output() for the place of the temporary file and for links. Not thread-safe.
///
/// A second thread writes the data to disk and, if requested, compresses it before. Without this
/// thread, half of the time to create a large trace would be spent in write() calls. The thread
/// starts when the first buffer is full.
class output_file {
 public:
  /// Throws input_error if the file cannot be created.
  /// @param path  the path of the output; "-" selects `standard_output`.
  /// @param gzip  whether to compress the output (level 6).
  output_file(const std::string& path, std::ostream& standard_output, bool gzip = false,
              leftovers left = leftovers::possible);
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;
  ~output_file();

  static constexpr std::size_t room_bytes = 4096;

  /// Returns a pointer to at least `n` writable bytes (n <= room_bytes). The caller then calls
  /// advance_to() with the end of what it has written. Throws input_error if writing fails.
  char* room(std::size_t n) {
    if (buffer_.size() - used_ < n) make_room();
    return buffer_.data() + used_;
  }
  void advance_to(const char* end) noexcept {
    used_ = static_cast<std::size_t>(end - buffer_.data());
  }

  /// Writes a text of any length. Throws input_error if writing fails.
  void write(std::string_view text) {
    while (!text.empty()) {
      if (used_ == buffer_.size()) make_room();
      const std::size_t n = std::min(text.size(), buffer_.size() - used_);
      std::memcpy(buffer_.data() + used_, text.data(), n);
      used_ += n;
      text.remove_prefix(n);
    }
  }

  /// Completes the output. Throws input_error if writing fails, for example because the disk is
  /// full; so do all functions that write.
  void commit();

 private:
  using block = std::vector<char>;

  void make_room();
  void write_blocks();
  void stop_writer();
  void write_block(std::string_view data, bool last);
  void write_out(const char* data, std::size_t n);

  block buffer_;
  std::size_t used_ = 0;

  std::string path_;
  std::string incomplete_;  // temporary path that will be renamed to path_; empty if there is none
  std::ostream* stream_ = nullptr;
  int descriptor_ = -1;
  std::unique_ptr<gzip_stream> gzip_;

  std::thread writer_;
  block_queue<block> blocks_{2};  // full buffers, which the writer thread writes
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_OUTPUT_FILE_HPP
