#include "log/compact/compact_reader.hpp"

#include <cstring>
#include <optional>

#include "log/compact/compact_block.hpp"
#include "lotus/folder/log_appender.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t buffer_bytes = 4 * lotus::detail::max_append_bytes;

}  // namespace

compact_reader::compact_reader(const log_file& file) : stored_(file), buffer_(buffer_bytes) {}

bool compact_reader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const std::size_t n = stored_.read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += n;
  return n > 0;
}

std::string_view compact_reader::next(lotus::detail::compact_block_header& header) {
  skipped_ = false;
  while (true) {
    const std::string_view left(buffer_.data() + begin_, end_ - begin_);
    const std::optional<std::size_t> bytes = find_block(left, header);
    if (!bytes) {
      if (fill()) continue;
      // The end of the log is reached. If bytes are left in the buffer, they begin with an
      // incomplete block. That block may be the end of an older part of the log, so the code below
      // searches the bytes after it for complete blocks of the next part.
      if (left.empty()) return {};
      skipped_ = true;
    } else if (*bytes > 0) {
      begin_ += *bytes;
      ++blocks_;
      return left.substr(0, *bytes);
    }
    skipped_ = true;
    const std::string_view magic(lotus::detail::compact_block_magic,
                                 sizeof(lotus::detail::compact_block_magic));
    const std::string_view rest(buffer_.data() + begin_ + 1, end_ - begin_ - 1);
    const std::size_t at = rest.find(magic);
    if (at != std::string_view::npos) {
      begin_ += 1 + at;
      continue;
    }
    // Discard the buffer except for its last bytes, because the magic number of the next block may
    // begin in them.
    begin_ = rest.size() < magic.size() ? end_ : end_ - (magic.size() - 1);
    if (!fill()) {
      begin_ = end_;
      return {};
    }
  }
}

}  // namespace lotus::tool
