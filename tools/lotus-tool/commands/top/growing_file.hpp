// Reads a file that grows, even if it is rotated.
#ifndef LOTUS_TOOL_COMMANDS_TOP_GROWING_FILE_HPP
#define LOTUS_TOOL_COMMANDS_TOP_GROWING_FILE_HPP

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace lotus::tool {

/// How much of a log file is valid.
struct log_extent {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;   ///< size of the whole file
  std::uint64_t bytes = 0;  ///< size of the valid part at the beginning of the file
};

/// Returns the path that a log has now, after it was renamed (as logrotate does); "" if the log was
/// removed.
std::string moved_log(const std::string& log, std::uint64_t inode);

/// Remembers how much of a file was read. The file may be extended, truncated, or renamed and
/// replaced by a new one (as logrotate does).
class growing_file {
 public:
  explicit growing_file(std::string path) : path_(std::move(path)) {}

  /// Calls `read(path, bytes)` for the file that now has the log's path; the bytes from done() to
  /// `bytes` are new. If the file that was read last has been renamed, first calls `read` for it.
  /// @param now  state of the file that now has the log's path.
  template <class Read>
  void follow(const log_extent& now, Read&& read) {
    if (inode_ != 0 && now.inode != inode_) {
      const std::string older = moved_log(path_, inode_);
      std::error_code error;
      const std::uint64_t bytes = older.empty() ? 0 : std::filesystem::file_size(older, error);
      if (!older.empty() && !error && bytes > done_) read(older, bytes);
      done_ = 0;
    }
    inode_ = now.inode;
    if (now.size < done_) done_ = 0;  // the file was truncated
    if (now.bytes > done_) read(path_, now.bytes);
  }

  /// Whether `fd` refers to the file for which follow() called `read`. `read` checks this after it
  /// has opened the path, because another file may have got this path in the meantime.
  bool is_open_as(int fd) const noexcept;

  /// Returns how many bytes of the file were read.
  std::uint64_t done() const noexcept { return done_; }
  void set_done(std::uint64_t bytes) noexcept { done_ = bytes; }

 private:
  std::string path_;
  std::uint64_t inode_ = 0;  // inode of the file; 0: nothing was read yet
  std::uint64_t done_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_GROWING_FILE_HPP
