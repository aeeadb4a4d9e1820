// One log, of which each time only that is read which was appended since.
#ifndef LOTUS_TOOL_COMMANDS_TOP_GROWING_LOG_HPP
#define LOTUS_TOOL_COMMANDS_TOP_GROWING_LOG_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "commands/top/growing_file.hpp"

namespace lotus::tool {

/// When the last record of so many bytes of a log was over; none where that cannot be told.
std::optional<std::int64_t> last_record_ns(const std::string& path, std::uint64_t bytes,
                                           bool beside);

/// Reads a log while it is written, also where it is moved away and begun anew, as logrotate does.
class growing_log {
 public:
  /// The most that is read at once: of what was appended beyond that only the end.
  static constexpr std::uint64_t most_bytes = std::uint64_t{8} << 20U;

  /// @param beside  it is a hidden log beside the others.
  growing_log(std::string path, bool beside) : file_(std::move(path)), beside_(beside) {}

  /// The whole lines that were appended to it since the last call, except those that are expected.
  /// Lines that ended before `since_ns` may be left out.
  /// @param now  of the file that has the log's name.
  std::string read(const log_extent& now, std::int64_t since_ns);

  /// The next so many lines are known already.
  void expect(std::size_t lines) noexcept { expected_ += lines; }

 private:
  void read_file(const std::string& path, std::uint64_t bytes, std::int64_t since_ns,
                 std::string& to);

  growing_file file_;
  bool beside_;
  std::size_t expected_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_GROWING_LOG_HPP
