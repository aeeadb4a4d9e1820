// Follows a file while it is written, also when it is rotated.
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
  std::uint64_t size = 0;   ///< of the whole file
  std::uint64_t bytes = 0;  ///< the valid part of it
};

/// The present path of a log that was renamed, as logrotate does; "" if it is gone.
std::string moved_log(const std::string& log, std::uint64_t inode);

/// Remembers how far a file was read. The file may be appended to, renamed and started anew (as
/// logrotate does), or truncated.
class growing_file {
 public:
  explicit growing_file(std::string path) : path_(std::move(path)) {}

  /// If the file was renamed since the last call, calls `read(path, bytes)` for the renamed file
  /// first. Then calls it for the file that has the name now. New are the bytes from done() up to
  /// `bytes`.
  /// @param now  state of the file that has the name.
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
    if (now.size < done_) done_ = 0;  // it was truncated
    if (now.bytes > done_) read(path_, now.bytes);
  }

  /// Whether an open file is the one that follow() passed to `read`. It may be another one, because
  /// the path may have been given to a new file before it was opened.
  bool is_open_as(int fd) const noexcept;

  /// The bytes of the file that were read.
  std::uint64_t done() const noexcept { return done_; }
  void set_done(std::uint64_t bytes) noexcept { done_ = bytes; }

 private:
  std::string path_;
  std::uint64_t inode_ = 0;  // 0: nothing was read yet
  std::uint64_t done_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_GROWING_FILE_HPP
