// Reads plain and gzip files byte by byte in constant memory.
#ifndef LOTUS_TOOL_BASE_FILES_BYTE_STREAM_HPP
#define LOTUS_TOOL_BASE_FILES_BYTE_STREAM_HPP

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.hpp"

namespace lotus::tool {

/// Throws input_error if a gzip file unpacks to more than 64 MiB and to more than 200 times its own
/// size. Real traces and logs never compress so well, because the times in them differ from line to
/// line; files that are designed to fill disks and waste time do.
/// @param unpacked  the number of bytes that were decompressed so far.
inline void refuse_gzip_bomb(const std::string& path, gzFile file, std::uint64_t unpacked) {
  constexpr std::uint64_t always_bytes = std::uint64_t{64} << 20U;
  constexpr std::uint64_t max_times = 200;
  if (unpacked <= always_bytes || gzdirect(file) != 0) return;
  if (unpacked / max_times <= static_cast<std::uint64_t>(gzoffset(file))) return;
  throw input_error(path +
                    ": reading stopped, because unpacked it is over 64 MiB and 200 times as large; "
                    "if that is intended, gunzip it and give the unpacked file");
}

/// The bytes of a plain or gzip file. Throws input_error if the file cannot be read or is a gzip
/// bomb. Not thread-safe.
class byte_stream {
 public:
  explicit byte_stream(const std::string& path)
      : path_(path), file_(gzopen(path.c_str(), "rb"), gzclose), buffer_(block_bytes) {
    if (!file_) throw input_error(path + ": cannot be read: " + error_text(errno));
    fill();
  }
  byte_stream(const byte_stream&) = delete;
  byte_stream& operator=(const byte_stream&) = delete;
  ~byte_stream() = default;

  /// Returns the next byte; 0 at the end.
  char take() {
    if (at_end()) return '\0';
    const char c = buffer_[at_];
    if (++at_ == end_) fill();
    return c;
  }
  /// Returns how many bytes of the stream the caller has consumed so far, counted after
  /// decompression.
  std::uint64_t taken() const noexcept { return before_ + at_; }

  bool at_end() const noexcept { return at_ == end_; }

  /// Returns the next bytes of the stream that are already in memory, without consuming them. The
  /// result is empty only at the end of the stream, and valid until bytes are consumed.
  std::string_view buffered() const noexcept { return {buffer_.data() + at_, end_ - at_}; }

  /// Consumes the first `n` bytes of buffered().
  void skip(std::size_t n) {
    at_ += n;
    if (at_ == end_) fill();
  }

  /// Consumes the next bytes, at most `limit`, and passes them to `write`. Returns their number.
  template <class Write>
  std::uint64_t pass(std::uint64_t limit, Write write) {
    std::uint64_t passed = 0;
    while (passed < limit && !at_end()) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(limit - passed, end_ - at_));
      write(std::string_view(buffer_.data() + at_, n));
      passed += n;
      at_ += n;
      if (at_ == end_) fill();
    }
    return passed;
  }

 private:
  static constexpr std::size_t block_bytes = std::size_t{128} << 10U;

  void fill() {
    before_ += end_;
    at_ = end_ = 0;
    const int n = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
    int error = Z_OK;
    const char* const what = gzerror(file_.get(), &error);
    if (n < 0 || (error != Z_OK && error != Z_STREAM_END)) {
      throw input_error(path_ + ": cannot be read to its end: " + what);
    }
    end_ = static_cast<std::size_t>(n);
    refuse_gzip_bomb(path_, file_.get(), before_ + end_);
  }

  std::string path_;
  // The file is held by a unique_ptr, so that it is closed even if the constructor throws after
  // opening it.
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::uint64_t before_ = 0;  // number of bytes of the stream before those in the buffer
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_BYTE_STREAM_HPP
