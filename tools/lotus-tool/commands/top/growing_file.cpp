#include "commands/top/growing_file.hpp"

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace lotus::tool {

namespace fs = std::filesystem;

bool growing_file::is_open_as(int fd) const noexcept {
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_ino == inode_;
}

std::string moved_log(const std::string& log, std::uint64_t inode) {
  const fs::path path(log);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path.parent_path(), error)) {
    struct stat status {};
    if (lstat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_ino == inode) {
      return entry.path().string();
    }
  }
  return {};
}

}  // namespace lotus::tool
