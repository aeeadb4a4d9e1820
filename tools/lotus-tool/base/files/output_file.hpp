// An output file that appears either complete or not at all.
#ifndef LOTUS_TOOL_BASE_FILES_OUTPUT_FILE_HPP
#define LOTUS_TOOL_BASE_FILES_OUTPUT_FILE_HPP

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace lotus::tool {

/// Compresses data for a file descriptor; defined where zlib is included.
class gzip_stream;

struct new_output {
  int descriptor = -1;     ///< closed by the caller
  std::string incomplete;  ///< temporary path to rename to the output's; empty: written directly
};

/// Creates a file next to `path`, to be renamed to `path` while the descriptor is open, and removes
/// the files that killed processes left there (make_unfinished_file()). A symbolic link is replaced
/// and not followed, so that users who can create links cannot choose what is overwritten. Devices,
/// pipes, and descriptors such as /dev/stdout or /dev/fd/N are written directly. Throws
/// input_error.
new_output open_new_output(const std::string& path);

/// Writes to a temporary file next to the target and renames it when it is complete, so that
/// readers never see half an output. Without commit() the target stays unchanged. open_new_output()
/// describes where it is written and how links are treated. Not thread-safe.
///
/// A second thread compresses and writes, because half of the time of writing a large trace is
/// spent in the kernel's copying. It starts when the first buffer is full.
class output_file {
 public:
  /// @param path    "-" stands for `standard_output`.
  /// @param gzip    compress (level 6).
  /// Throws input_error if the file cannot be created.
  output_file(const std::string& path, std::ostream& standard_output, bool gzip = false);
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;
  ~output_file();

  /// Returns at least `n` writable bytes (n <= room_bytes); call advance_to() afterward.
  char* room(std::size_t n) {
    if (buffer_.size() - used_ < n) flush();
    return buffer_.data() + used_;
  }
  void advance_to(const char* end) noexcept {
    used_ = static_cast<std::size_t>(end - buffer_.data());
  }

  /// Writes a text of any length. Throws input_error, as commit() does, if the disk is full, for
  /// example.
  void write(std::string_view text);

  void commit();

  static constexpr std::size_t room_bytes = 4096;

 private:
  using block = std::vector<char>;

  void flush();
  void hand_over();
  void write_blocks();
  void stop_writer();
  void write_block(std::string_view data, bool last);
  void write_out(const char* data, std::size_t n);

  std::string path_;
  std::string incomplete_;  // temporary path that will be renamed to path_; empty if there is none
  std::ostream* stream_ = nullptr;
  int descriptor_ = -1;
  std::unique_ptr<gzip_stream> gzip_;
  block buffer_;
  std::size_t used_ = 0;

  std::thread writer_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<block> full_;   // the first one is being written
  std::vector<block> free_;  // written, can be filled again
  bool stopping_ = false;
  std::exception_ptr failure_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_OUTPUT_FILE_HPP
