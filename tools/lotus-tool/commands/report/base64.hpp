// Encodes bytes as base64.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_BASE64_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_BASE64_HPP

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "lotus/format/varint.hpp"

namespace lotus::tool {

/// Appends the base64 encoding (RFC 4648, section 4).
void append_base64(std::string& to, std::string_view bytes);
std::string base64(std::string_view bytes);

/// Appends the base64 encoding of bytes that the caller writes to room(), part by part.
class base64_writer {
 public:
  explicit base64_writer(std::string& to) : to_(to) {}

  /// Returns where the caller may write at most `most` bytes; then call advance_to().
  char* room() noexcept { return bytes_ + used_; }
  void advance_to(const char* end) {
    used_ = static_cast<std::size_t>(end - bytes_);
    if (sizeof bytes_ - used_ < most) pour(used_ - used_ % 3);
  }
  void finish() { pour(used_); }

  static constexpr std::size_t most = 3 * lotus::detail::varint_bytes;

 private:
  void pour(std::size_t n) {
    append_base64(to_, {bytes_, n});
    std::copy(bytes_ + n, bytes_ + used_, bytes_);
    used_ -= n;
  }

  std::string& to_;
  std::size_t used_ = 0;
  char bytes_[3072];
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_BASE64_HPP
