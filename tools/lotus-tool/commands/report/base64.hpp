// Encodes bytes as base64.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_BASE64_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_BASE64_HPP

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "lotus/format/varint.hpp"

namespace lotus::tool {

/// Appends the base64 encoding (RFC 4648, section 4) of `bytes` to `to`.
void append_base64(std::string& to, std::string_view bytes);
std::string base64(std::string_view bytes);

/// Encodes bytes as base64 in small blocks, so that the caller need not collect them first. The
/// caller writes bytes to room() and then passes their end to advance_to(). finish() encodes the
/// last bytes.
class base64_writer {
 public:
  explicit base64_writer(std::string& to) : to_(to) {}

  /// Returns the address to which the caller may write up to `most` bytes.
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
