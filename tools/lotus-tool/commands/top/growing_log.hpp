// Follows one text log; each call reads only what was appended since the last.
#ifndef LOTUS_TOOL_COMMANDS_TOP_GROWING_LOG_HPP
#define LOTUS_TOOL_COMMANDS_TOP_GROWING_LOG_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "commands/top/growing_file.hpp"

namespace lotus::tool {

/// The end time of the last record within the first `bytes` bytes of a log; nullopt if unknown.
std::optional<std::int64_t> last_record_ns(const std::string& path, std::uint64_t bytes,
                                           bool is_side_log);

/// Reads a log while it is written, even if it is renamed and started anew, as logrotate does.
class growing_log {
 public:
  /// The maximum number of bytes per call; if more was appended, only the end is read.
  static constexpr std::uint64_t most_bytes = std::uint64_t{8} << 20U;

  /// @param is_side_log  whether the log is a hidden side log.
  growing_log(std::string path, bool is_side_log)
      : file_(std::move(path)), is_side_log_(is_side_log) {}

  /// The complete lines that were appended since the last call, except for expected lines. May
  /// leave out lines that ended before `since_ns`.
  /// @param now  state of the file that has the log's name.
  std::string read(const log_extent& now, std::int64_t since_ns);

  /// The next `lines` lines are already known and will be skipped.
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
