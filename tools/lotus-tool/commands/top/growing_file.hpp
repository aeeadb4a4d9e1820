// A file that is followed while it is written, also through a rotation.
#ifndef LOTUS_TOOL_COMMANDS_TOP_GROWING_FILE_HPP
#define LOTUS_TOOL_COMMANDS_TOP_GROWING_FILE_HPP

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace lotus::tool {

/// How much of a log file counts.
struct log_extent {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;   ///< of the file
  std::uint64_t bytes = 0;  ///< of these
};

/// Where a log is now that was moved away, as logrotate does; "" where it is gone.
std::string moved_log(const std::string& log, std::uint64_t inode);

/// How far a file was read that is appended to, and may be moved away and begun anew, as logrotate
/// does, or be emptied.
class growing_file {
 public:
  explicit growing_file(std::string path) : path_(std::move(path)) {}

  /// Calls `read(path, bytes)` for the file that was moved away since the last call, if there is
  /// one, then for the one that has its name: what lies from done() up to `bytes` is new.
  /// @param now  of the file that has the name.
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
    if (now.size < done_) done_ = 0;  // it was emptied
    if (now.bytes > done_) read(path_, now.bytes);
  }

  /// Whether an open file is the one that follow() calls for; its name may be another one's by now.
  bool is_open_as(int fd) const noexcept;

  /// Bytes of it that were read.
  std::uint64_t done() const noexcept { return done_; }
  void set_done(std::uint64_t bytes) noexcept { done_ = bytes; }

 private:
  std::string path_;
  std::uint64_t inode_ = 0;  // 0: nothing was read yet
  std::uint64_t done_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_GROWING_FILE_HPP
