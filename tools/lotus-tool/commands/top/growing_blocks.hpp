// Reads a compact log that grows; each call reads only the bytes appended since the last call.
#ifndef LOTUS_TOOL_COMMANDS_TOP_GROWING_BLOCKS_HPP
#define LOTUS_TOOL_COMMANDS_TOP_GROWING_BLOCKS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "commands/top/growing_file.hpp"
#include "log/compact/compact_block.hpp"
#include "lotus/folder/log_appender.hpp"

namespace lotus::tool {

/// Returns the end time of the last block in the first `bytes` bytes of a log; nullopt if unknown.
std::optional<std::int64_t> last_block_ns(const std::string& path, std::uint64_t bytes);

/// Reads a compact log while a program writes it. Returns each record as a line of a text log,
/// grouped by the role of the text log that would contain the line. Not thread-safe.
class growing_blocks {
 public:
  using lines_by_role = std::array<std::string, lotus::detail::log_roles>;

  /// Maximum number of bytes read by one call. If more were appended, only the last ones are read.
  static constexpr std::uint64_t max_bytes = std::uint64_t{2} << 20U;

  explicit growing_blocks(std::string path) : file_(std::move(path)) {}

  /// Returns the lines of complete blocks that were appended since the last call, except lines
  /// announced by expect(). The first call skips older blocks, which ended before `since_ns`,
  /// except those that are needed to decode later ones.
  /// @param now  state of the file that now has the log's name.
  lines_by_role read(const log_extent& now, std::int64_t since_ns);

  /// Announces that the next `lines` lines of a role are already known, because they were read from
  /// a ring. read() skips them.
  void expect(lotus::detail::log_role role, std::size_t lines) noexcept {
    expected_[static_cast<std::size_t>(role)] += lines;
  }

 private:
  std::uint64_t begin_at(const std::string& path, std::uint64_t bytes, std::int64_t since_ns) const;
  void read_file(const std::string& path, std::uint64_t bytes, std::int64_t since_ns,
                 lines_by_role& to);
  void add_block(const lotus::detail::compact_block_header& header, std::string_view block,
                 lines_by_role& to);

  growing_file file_;
  compact_decoder decoder_;
  std::array<std::size_t, lotus::detail::log_roles> expected_{};
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_GROWING_BLOCKS_HPP
