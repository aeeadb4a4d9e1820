// Encodes bytes as base64.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_BASE64_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_BASE64_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/formats/json_writer.hpp"
#include "lotus/format/varint.hpp"

namespace lotus::tool {

/// Appends the base64 encoding (RFC 4648, section 4) of `bytes` to `to`.
void append_base64(std::string& to, std::string_view bytes);
std::string base64(std::string_view bytes);

/// Writes numbers in base64 as a JSON string, in small blocks, so that the caller need not collect
/// them first. finish() encodes the last ones.
class base64_writer {
 public:
  explicit base64_writer(json_writer& to) : to_(to.raw("\"").text()) {}

  /// Writes a number in LEB128.
  void number(std::uint64_t value) {
    const char* const end = lotus::detail::put_varint(bytes_ + used_, value);
    used_ = static_cast<std::size_t>(end - bytes_);
    if (sizeof bytes_ - used_ < lotus::detail::varint_bytes) pour(used_ - used_ % 3);
  }
  void finish() {
    pour(used_);
    to_ += '"';
  }

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
