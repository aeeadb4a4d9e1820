#include "log/log_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/found_file.hpp"
#include "base/progress.hpp"
#include "log/log_files.hpp"
#include "log/log_line.hpp"
#include "log/older_part.hpp"

namespace lotus::tool {
namespace {

// Large enough that a system call's cost vanishes, small enough to stay in the L2 cache.
constexpr std::size_t block_bytes = std::size_t{256} << 10U;

[[noreturn]] void cannot_read(const std::string& path, int error) {
  throw input_error(path +
                    ": cannot be read: " + std::strerror(error));  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

block_reader::block_reader(const log_file& file) : file_(file) {
  if (file.bytes > 0) descriptor_ = open_found(file.path);
  const std::uint64_t known = file.bytes + file.tail.size() + 1;
  buffer_.resize(file.older.empty() ? std::min<std::uint64_t>(block_bytes, known) : block_bytes);
}

block_reader::~block_reader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::size_t block_reader::read_older(char* to, std::size_t room) {
  while (older_done_ < file_.older.size()) {
    if (older_ == nullptr) {
      older_ = std::make_unique<older_part_reader>(file_.older[older_done_]);
    }
    const std::size_t n = older_->read(to, room);
    if (n > 0) {
      last_ = to[n - 1];
      return n;
    }
    older_.reset();
    ++older_done_;
    if (last_ == '\n') continue;
    // A torn line must not be joined to the next part.
    last_ = *to = '\n';
    return 1;
  }
  return 0;
}

std::size_t block_reader::read_some(char* to, std::size_t room) {
  if (const std::size_t n = read_older(to, room); n > 0) return n;
  while (from_disk_ < file_.bytes) {
    const std::size_t wanted = std::min<std::uint64_t>(room, file_.bytes - from_disk_);
    const ssize_t got = ::read(descriptor_, to, wanted);
    if (got < 0) {
      if (errno == EINTR) continue;
      cannot_read(file_.path, errno);
    }
    if (got == 0) break;  // the file has shrunk since it was found
    from_disk_ += static_cast<std::uint64_t>(got);
    count_bytes(static_cast<std::uint64_t>(got));
    return static_cast<std::size_t>(got);
  }
  const std::size_t n = file_.tail.copy(to, room, from_tail_);
  from_tail_ += n;
  return n;
}

std::string_view block_reader::next() {
  std::memmove(buffer_.data(), buffer_.data() + done_, used_ - done_);
  used_ -= done_;
  done_ = 0;
  std::size_t searched = 0;
  while (!at_end_) {
    if (used_ == buffer_.size()) {
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
  // Keep one byte too many, so that the line is seen to be too long; drop the rest of it.
  std::size_t n = 0;
  char* const rest = buffer_.data() + max_line_bytes + 1;
  const std::size_t room = buffer_.size() - max_line_bytes - 1;
  while ((n = read_some(rest, room)) != 0) {
    const auto* newline = static_cast<const char*>(std::memchr(rest, '\n', n));
    if (newline == nullptr) continue;
    // What follows the long line is moved behind its cut-off beginning and comes next.
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
  diagnostics.end_of_file(file.path);
  if (lines == 0) diagnostics.note(file.path + ": empty");
  if (blank_lines > 0) {
    diagnostics.note(file.path + ": " + std::to_string(blank_lines) + " blank lines skipped");
  }
  if (crlf) diagnostics.note(file.path + ": lines end in CR LF");
  if (blanks) diagnostics.note(file.path + ": blanks behind commas skipped");
}

}  // namespace lotus::tool
