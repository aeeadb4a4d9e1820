#include "log/stored_bytes.hpp"

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/errors.hpp"
#include "base/files/found_file.hpp"
#include "base/terminal/progress.hpp"

namespace lotus::tool {

stored_bytes::stored_bytes(const log_file& file) : file_(file), from_disk_(file.first) {
  if (file.bytes <= file.first) return;
  descriptor_ = open_found(file.path);
  struct stat status {};
  const bool other =
      file.inode != 0 && (fstat(descriptor_, &status) != 0 || status.st_ino != file.inode);
  if (other) from_disk_ = file.bytes;
}

stored_bytes::~stored_bytes() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::size_t stored_bytes::read(char* to, std::size_t room) {
  for (; older_done_ < file_.older.size(); ++older_done_) {
    if (older_ == nullptr) {
      older_ = std::make_unique<older_part_reader>(file_.older[older_done_]);
    }
    if (const std::size_t n = older_->read(to, room); n > 0) return n;
    older_.reset();
  }
  while (from_disk_ < file_.bytes) {
    const std::size_t wanted = std::min<std::uint64_t>(room, file_.bytes - from_disk_);
    const ssize_t got = ::pread(descriptor_, to, wanted, static_cast<off_t>(from_disk_));
    if (got < 0) {
      if (errno == EINTR) continue;
      throw input_error(file_.path + ": cannot be read: " + error_text(errno));
    }
    if (got == 0) break;  // the file was truncated after it was found
    from_disk_ += static_cast<std::uint64_t>(got);
    count_bytes(static_cast<std::uint64_t>(got));
    return static_cast<std::size_t>(got);
  }
  return 0;
}

}  // namespace lotus::tool
