// Reads a text log that grows; each call reads only the bytes appended since the last call.
#ifndef LOTUS_TOOL_COMMANDS_TOP_GROWING_LOG_HPP
#define LOTUS_TOOL_COMMANDS_TOP_GROWING_LOG_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "commands/top/growing_file.hpp"

namespace lotus::tool {

/// Returns the end time of the last record in the first `bytes` bytes of a log; nullopt if unknown.
std::optional<std::int64_t> last_record_ns(const std::string& path, std::uint64_t bytes,
                                           bool is_side_log);

/// Reads a text log while a program writes it, even if the log is renamed and replaced by a new
/// file.
class growing_log {
 public:
  /// Maximum number of bytes read by one call. If more were appended, only the last ones are read.
  static constexpr std::uint64_t max_bytes = std::uint64_t{8} << 20U;

  /// @param is_side_log  whether the log is a side log, whose name is hidden.
  growing_log(std::string path, bool is_side_log)
      : file_(std::move(path)), is_side_log_(is_side_log) {}

  /// Returns the complete lines that were appended since the last call, except lines announced by
  /// expect(). May leave out lines whose records ended before `since_ns`.
  /// @param now  state of the file that now has the log's name.
  std::string read(const log_extent& now, std::int64_t since_ns);

  /// Announces that the next `lines` lines are already known, because they were read from a ring.
  /// read() skips them.
  void expect(std::size_t lines) noexcept { expected_ += lines; }

 private:
  void read_file(const std::string& path, std::uint64_t bytes, std::int64_t since_ns,
                 std::string& to);

  growing_file file_;
  bool is_side_log_;
  std::size_t expected_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_GROWING_LOG_HPP
