// An output that appears whole or not at all.
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

/// Compresses into a file descriptor; defined where zlib is seen.
class gzip_stream;

struct new_output {
  int descriptor = -1;  ///< the caller's to close
  std::string beside;   ///< to be renamed to the output's name; empty: is written directly
};

/// Makes a file beside `path`, to be renamed to it while the descriptor is open, and removes those
/// that killed processes left beside it (make_unfinished_file()). A symbolic link is not followed
/// but replaced then, so that nobody who can make links decides what is overwritten. Written
/// directly are devices and pipes, and the descriptors that /dev/stdout, /dev/fd/N and the like
/// stand for. Throws input_error.
new_output open_new_output(const std::string& path);

/// Writes beside the target and renames when everything is written, so that nobody ever sees
/// half an output; without commit() the target stays as it was. Where it is written, and what
/// becomes of a link, says open_new_output(). Not thread-safe.
///
/// A second thread compresses and writes, because half of the time of making a large trace is
/// the kernel's copying of it. It starts when the first buffer is full.
class output_file {
 public:
  /// @param path    "-" stands for `standard_output`.
  /// @param gzip    compress (level 6).
  /// Throws input_error when the file cannot be made.
  output_file(const std::string& path, std::ostream& standard_output, bool gzip = false);
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;
  ~output_file();

  /// At least `n` writable bytes (n <= room_bytes), to be followed by advance_to().
  char* room(std::size_t n) {
    if (buffer_.size() - used_ < n) flush();
    return buffer_.data() + used_;
  }
  void advance_to(const char* end) noexcept {
    used_ = static_cast<std::size_t>(end - buffer_.data());
  }

  /// Any length. Throws input_error when the disk is full and the like, here and in commit().
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
  std::string beside_;  // what is renamed to it; empty when nothing is
  std::ostream* stream_ = nullptr;
  int descriptor_ = -1;
  std::unique_ptr<gzip_stream> gzip_;
  block buffer_;
  std::size_t used_ = 0;

  std::thread writer_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<block> full_;   // the first one is being written
  std::vector<block> free_;  // written, to be filled again
  bool stopping_ = false;
  std::exception_ptr failure_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_OUTPUT_FILE_HPP
