// Plain and gzip files, byte by byte in constant memory.
#ifndef LOTUS_TOOL_BYTE_STREAM_HPP
#define LOTUS_TOOL_BYTE_STREAM_HPP

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "errors.hpp"

namespace lotus::tool {

/// A plain or gzip file as bytes; the stream that RapidJSON reads from. Throws input_error when
/// the file cannot be read. Not thread-safe.
class byte_stream {
 public:
  using Ch = char;  // NOLINT(readability-identifier-naming): RapidJSON's names

  explicit byte_stream(const std::string& path)
      : path_(path), file_(gzopen(path.c_str(), "rb"), gzclose), buffer_(block_bytes) {
    if (!file_) {
      throw input_error(
          path + ": cannot be read: " + std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
    }
    fill();
  }
  byte_stream(const byte_stream&) = delete;
  byte_stream& operator=(const byte_stream&) = delete;
  ~byte_stream() = default;

  // NOLINTBEGIN(readability-identifier-naming)
  Ch Peek() const { return at_ < end_ ? buffer_[at_] : '\0'; }
  Ch Take() {
    const Ch c = Peek();
    if (at_ < end_ && ++at_ == end_) fill();
    return c;
  }
  std::size_t Tell() const { return static_cast<std::size_t>(before_ + at_); }
  // Only for parsing in place, which a stream cannot do.
  static Ch* PutBegin() { return nullptr; }
  static void Put(Ch) {}
  static void Flush() {}
  static std::size_t PutEnd(Ch*) { return 0; }
  // NOLINTEND(readability-identifier-naming)

  bool at_end() const noexcept { return at_ == end_; }

  /// Hands the next bytes to `write`, at most `limit`; returns how many.
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
  }

  std::string path_;
  // Closed also when the constructor fails on a damaged file.
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::uint64_t before_ = 0;  // bytes before the buffer
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BYTE_STREAM_HPP
