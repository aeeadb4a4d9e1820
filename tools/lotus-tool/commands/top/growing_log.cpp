#include "commands/top/growing_log.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <lotus/recovery/ring_copy.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/errors.hpp"
#include "base/files/found_file.hpp"
#include "commands/top/growing_file.hpp"
#include "commands/top/line_window.hpp"
#include "log/log_line.hpp"

namespace lotus::tool {
namespace {

/// Appends `bytes` bytes of a file, from offset `at` on, to `to`; nothing if the file is too short.
void add_bytes(int fd, std::uint64_t at, std::uint64_t bytes, std::string& to) {
  const std::size_t before = to.size();
  to.resize(before + bytes);
  if (!lotus::detail::read_at(fd, to.data() + before, bytes, at)) to.resize(before);
}

/// Returns the last lines of a file: those whose records ended at `since_ns` or later, and possibly
/// some lines before them. Returns at most max_bytes bytes.
std::string tail_of(int fd, std::uint64_t from, std::uint64_t bytes, std::int64_t since_ns,
                    bool is_side_log) {
  for (std::uint64_t most = std::uint64_t{64} << 10U;; most *= 4) {
    most = std::min(most, growing_log::max_bytes);
    const std::uint64_t at = bytes - from > most ? bytes - most : from;
    std::string text;
    add_bytes(fd, at, bytes - at, text);
    if (at == from) return text;
    const std::size_t first = text.find('\n') + 1;
    if (first == 0) return {};
    text.erase(0, first);
    const std::size_t wanted = first_since(text, since_ns, is_side_log);
    if (wanted > 0 || most == growing_log::max_bytes) return text.substr(wanted);
  }
}

}  // namespace

std::optional<std::int64_t> last_record_ns(const std::string& path, std::uint64_t bytes,
                                           bool is_side_log) {
  constexpr std::uint64_t max_tail = std::uint64_t{64} << 10U;
  try {
    const int fd = open_found(path);
    std::string text;
    add_bytes(fd, bytes > max_tail ? bytes - max_tail : 0, std::min(bytes, max_tail), text);
    close(fd);
    return last_end(std::string_view(text).substr(0, text.rfind('\n') + 1), is_side_log);
  } catch (const input_error&) {
    return std::nullopt;
  }
}

std::string growing_log::read(const log_extent& now, std::int64_t since_ns) {
  std::string lines;
  file_.follow(now, [&](const std::string& path, std::uint64_t bytes) {
    read_file(path, bytes, since_ns, lines);
  });
  return lines;
}

void growing_log::read_file(const std::string& path, std::uint64_t bytes, std::int64_t since_ns,
                            std::string& to) {
  const std::uint64_t done = file_.done();
  std::string text;
  try {
    const int fd = open_found(path);
    if (file_.is_open_as(fd)) {
      const bool all = (done > 0 || expected_ > 0) && bytes - done <= max_bytes;
      if (all) {
        add_bytes(fd, done, bytes - done, text);
      } else {
        text = tail_of(fd, done, bytes, since_ns, is_side_log_);
        expected_ = 0;  // the skipped part contains the expected lines
      }
    }
    close(fd);
  } catch (const input_error&) {
    return;  // the file was removed
  }
  const std::size_t complete = text.rfind('\n') + 1;
  // An incomplete line that is longer than any valid one is skipped.
  if (text.size() - complete > max_line_bytes) {
    file_.set_done(bytes);
  } else if (!text.empty()) {
    file_.set_done(bytes - (text.size() - complete));
  }
  std::size_t known = 0;
  for (; expected_ > 0 && known < complete; --expected_) known = text.find('\n', known) + 1;
  to.append(text, known, complete - known);
}

}  // namespace lotus::tool
