#include "base/files/found_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <lotus/folder/safe_open.hpp>
#include <system_error>

#include "base/errors.hpp"

namespace lotus::tool {

bool is_found_file(const std::filesystem::directory_entry& entry) {
  std::error_code error;
  return std::filesystem::is_regular_file(entry.symlink_status(error));
}

int open_found(const std::string& path) {
  struct stat status {};
  const int fd = lotus::detail::open_regular(AT_FDCWD, path.c_str(), O_RDONLY, status);
  if (fd >= 0) return fd;
  const char* const why = lotus::detail::file_error_text(-fd);
  const bool refused = lotus::detail::is_refusal(-fd);
  const std::string text = path + (refused ? ": not read, it " : ": cannot be read: ") + why;
  if (fd == -ENOENT) {
    throw vanished_file(text + " (a running program renames and deletes logs; try again)");
  }
  throw input_error(text);
}

std::string read_found(const std::string& path, std::uint64_t max_bytes) {
  const int fd = open_found(path);
  std::string text;
  std::array<char, 1U << 16U> part{};
  ssize_t got = 0;
  while ((got = ::read(fd, part.data(), part.size())) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
    if (text.size() > max_bytes) break;
  }
  const int error = errno;
  ::close(fd);
  if (text.size() > max_bytes) {
    throw input_error(path + ": not read, it is larger than " + std::to_string(max_bytes) +
                      " bytes");
  }
  if (got < 0) throw input_error(path + ": cannot be read: " + error_text(error));
  return text;
}

}  // namespace lotus::tool
