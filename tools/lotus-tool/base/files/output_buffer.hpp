// Collects an output in memory.
#ifndef LOTUS_TOOL_BASE_FILES_OUTPUT_BUFFER_HPP
#define LOTUS_TOOL_BASE_FILES_OUTPUT_BUFFER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// Memory to which an output is written. The derived class decides what happens with a full buffer.
/// Not thread-safe.
class output_buffer {
 public:
  output_buffer(const output_buffer&) = delete;
  output_buffer& operator=(const output_buffer&) = delete;
  virtual ~output_buffer() = default;

  static constexpr std::size_t room_bytes = 4096;

  /// Returns a pointer to at least `n` writable bytes (n <= room_bytes). The caller then calls
  /// advance_to() with the end of what it has written. Throws input_error if the output cannot be
  /// written.
  char* room(std::size_t n) {
    if (buffer_.size() - used_ < n) make_room(n);
    return buffer_.data() + used_;
  }
  void advance_to(const char* end) noexcept {
    used_ = static_cast<std::size_t>(end - buffer_.data());
  }

  /// Writes a text of any length. Throws input_error if the output cannot be written.
  void write(std::string_view text) {
    while (!text.empty()) {
      if (used_ == buffer_.size()) make_room(1);
      const std::size_t n = std::min(text.size(), buffer_.size() - used_);
      std::memcpy(buffer_.data() + used_, text.data(), n);
      used_ += n;
      text.remove_prefix(n);
    }
  }

  /// Call this between two pieces of an output: only here, form_in_parts() divides a part. Throws
  /// input_error if the output cannot be written.
  void end_piece() {
    if (used_ >= divided_at_) divide();
  }

 protected:
  using block = std::vector<char>;

  /// @param divided_at  the number of bytes after which end_piece() calls divide().
  explicit output_buffer(std::size_t divided_at = SIZE_MAX) : divided_at_(divided_at) {}

  block buffer_;          // NOLINT(*-non-private-member-variables-in-classes)
  std::size_t used_ = 0;  // NOLINT(*-non-private-member-variables-in-classes)

 private:
  /// Makes at least `n` bytes (n <= room_bytes) of the buffer writable.
  virtual void make_room(std::size_t n) = 0;
  virtual void divide() {}

  std::size_t divided_at_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_OUTPUT_BUFFER_HPP
