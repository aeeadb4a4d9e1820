#include "log/log_reader.hpp"

#include <algorithm>

namespace lotus::tool {
namespace {

// The number of bytes to read with one system call: large enough that the cost of the call is
// negligible, and small enough for the L2 cache.
constexpr std::size_t block_bytes = std::size_t{256} << 10U;

}  // namespace

block_reader::block_reader(const log_file& file) : file_(file), stored_(file) {
  const std::uint64_t known = file.bytes - file.first + file.tail.size() + 1;
  buffer_.resize(file.older.empty() ? std::min<std::uint64_t>(block_bytes, known) : block_bytes);
}

std::size_t block_reader::read_some(char* to, std::size_t room) {
  // If the previous part of the log ended with an incomplete line, insert a line end, so that this
  // line is not joined to the first line of the next part.
  const std::size_t between = parts_done_ < file_.older.size() && last_ != '\n' ? 1 : 0;
  std::size_t n = stored_.read(to + between, room - between);
  if (n > 0) {
    last_ = to[between + n - 1];
    const bool next_part = stored_.parts_done() > parts_done_;
    parts_done_ = stored_.parts_done();
    if (between == 0) return n;
    if (!next_part) {
      std::memmove(to, to + 1, n);
      return n;
    }
    *to = '\n';
    return n + 1;
  }
  n = file_.tail.copy(to, room, from_tail_);
  from_tail_ += n;
  return n;
}

std::string_view block_reader::next() {
  std::memmove(buffer_.data(), buffer_.data() + done_, used_ - done_);
  used_ -= done_;
  done_ = 0;
  std::size_t searched = 0;
  while (!at_end_) {
    if (buffer_.size() - used_ < 2) {
      if (used_ > max_line_bytes) return cut_long_line();
      buffer_.resize(used_ * 2);
    }
    const std::size_t n = read_some(buffer_.data() + used_, buffer_.size() - used_);
    if (n == 0) {
      at_end_ = true;
      break;
    }
    used_ += n;
    const std::string_view fresh(buffer_.data() + searched, used_ - searched);
    const std::size_t newline = fresh.rfind('\n');
    if (newline != std::string_view::npos) {
      done_ = searched + newline + 1;
      return {buffer_.data(), done_};
    }
    searched = used_;
  }
  done_ = used_;
  return {buffer_.data(), used_};
}

std::string_view block_reader::cut_long_line() {
  // Keep the first max_line_bytes + 1 bytes of the line, so that parse_line() recognizes the line
  // as too long. Drop the other bytes of the line.
  std::size_t n = 0;
  char* const rest = buffer_.data() + max_line_bytes + 1;
  const std::size_t room = buffer_.size() - max_line_bytes - 1;
  while ((n = read_some(rest, room)) != 0) {
    const auto* newline = static_cast<const char*>(std::memchr(rest, '\n', n));
    if (newline == nullptr) continue;
    // Move the bytes that follow the long line to the position right after the part of the line
    // that is kept. The next call of next() returns them.
    const std::size_t after = n - static_cast<std::size_t>(newline - rest);
    std::memmove(rest, newline, after);
    used_ = max_line_bytes + 1 + after;
    done_ = max_line_bytes + 2;
    return {buffer_.data(), done_};
  }
  at_end_ = true;
  used_ = done_ = max_line_bytes + 1;
  return {buffer_.data(), used_};
}

void file_oddities::tell(const log_file& file, diagnostic_log& diagnostics) const {
  diagnostics.end_of_file(shown_path(file));
  if (lines == 0 && file.first == 0) diagnostics.note(file.path + ": empty");
  if (blank_lines > 0) {
    diagnostics.note(file.path + ": " + std::to_string(blank_lines) + " blank lines ignored");
  }
  if (crlf) diagnostics.note(file.path + ": lines end in CR LF");
  if (blanks) diagnostics.note(file.path + ": spaces after commas ignored");
}

}  // namespace lotus::tool
