#include "commands/top/growing_blocks.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <lotus/format/compact_layout.hpp>
#include <lotus/recovery/ring_copy.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.hpp"
#include "base/files/found_file.hpp"
#include "log/compact/block_index.hpp"
#include "log/compact/compact_block.hpp"
#include "log/compact/compact_lines.hpp"
#include "log/compact/compact_roles.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_line.hpp"
#include "log/side_line.hpp"

namespace lotus::tool {
namespace {

using lotus::detail::log_role;

std::optional<std::vector<indexed_block>> blocks_of(const std::string& path, std::uint64_t bytes) {
  return index_blocks({path, file_role::compact, 0, bytes, {}});
}

}  // namespace

std::optional<std::int64_t> last_block_ns(const std::string& path, std::uint64_t bytes) {
  try {
    const std::optional<std::vector<indexed_block>> blocks = blocks_of(path, bytes);
    if (!blocks || blocks->empty()) return std::nullopt;
    return blocks->back().last_ns;
  } catch (const input_error&) {
    return std::nullopt;
  }
}

growing_blocks::lines_by_role growing_blocks::read(const log_extent& now, std::int64_t since_ns) {
  lines_by_role lines;
  file_.follow(now, [&](const std::string& path, std::uint64_t bytes) {
    read_file(path, bytes, since_ns, lines);
  });
  return lines;
}

/// Returns the offset from which to read to get the first block that ended at `since_ns` or later.
/// If decoding this block needs earlier blocks, the offset is that of the nearest earlier block
/// that can be decoded without others. Skips more blocks if more than max_bytes would be left to
/// read.
std::uint64_t growing_blocks::begin_at(const std::string& path, std::uint64_t bytes,
                                       std::int64_t since_ns) const {
  const std::optional<std::vector<indexed_block>> blocks = blocks_of(path, bytes);
  const std::uint64_t done = file_.done();
  if (!blocks) return done;
  std::uint64_t begin = done;
  for (const indexed_block& b : *blocks) {
    if (b.anew) begin = std::max(done, b.byte);
    if (b.last_ns >= since_ns && bytes - begin <= max_bytes) break;
  }
  return begin;
}

void growing_blocks::read_file(const std::string& path, std::uint64_t bytes, std::int64_t since_ns,
                               lines_by_role& to) {
  const std::uint64_t done = file_.done();
  std::string text;
  std::uint64_t begin = done;
  try {
    const bool knows_more = std::any_of(expected_.begin(), expected_.end(),
                                        [](std::size_t lines) { return lines > 0; });
    const bool all = (done > 0 || knows_more) && bytes - done <= max_bytes;
    if (!all) begin = begin_at(path, bytes, since_ns);
    if (begin > done) {
      decoder_.lost_blocks();
      expected_ = {};  // the skipped blocks contain the expected lines
    }
    const int fd = open_found(path);
    if (file_.is_open_as(fd)) {
      text.resize(bytes - begin);
      if (!lotus::detail::read_at(fd, text.data(), text.size(), begin)) text.clear();
    }
    close(fd);
    if (text.empty()) return;
  } catch (const input_error&) {
    return;  // the file was removed
  }
  std::string_view rest = text;
  lotus::detail::compact_block_header header{};
  while (!rest.empty()) {
    const std::optional<std::size_t> block = find_block(rest, header);
    if (!block) break;  // the block is not completely written yet
    if (*block > 0) {
      add_block(header, rest.substr(0, *block), to);
      rest.remove_prefix(*block);
      continue;
    }
    decoder_.lost_blocks();
    constexpr std::string_view magic(lotus::detail::compact_block_magic,
                                     sizeof(lotus::detail::compact_block_magic));
    rest.remove_prefix(std::min(rest.find(magic, 1), rest.size()));
  }
  file_.set_done(begin + text.size() - rest.size());
}

void growing_blocks::add_block(const lotus::detail::compact_block_header& header,
                               std::string_view block, lines_by_role& to) {
  if (!decoder_.begin(header, block)) return;
  compact_lines main(file_role::main);
  compact_lines worker(file_role::worker);
  compact_record record;
  log_line line;
  side_line side;
  const auto add = [&](log_role role, const auto& of) {
    const auto at = static_cast<std::size_t>(role);
    if (expected_[at] > 0) {
      --expected_[at];
    } else {
      append_text(of, to[at]);
    }
  };
  while (decoder_.next(record)) {
    if (main.line_of(record, line)) add(log_role::main, line);
    if (worker.line_of(record, line)) add(log_role::worker, line);
    if (compact_lines::line_of(record, side)) add(log_role::side, side);
  }
}

}  // namespace lotus::tool
