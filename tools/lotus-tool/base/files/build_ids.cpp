#include "base/files/build_ids.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <lotus/base/build_id.hpp>
#include <system_error>

namespace lotus::tool {

std::string build_id_of(const std::string& path) {
  std::error_code error;
  // Open only a regular file, because opening a pipe would block.
  if (!std::filesystem::is_regular_file(path, error)) return {};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);  // NOLINT(*-vararg)
  if (fd < 0) return {};
  const auto read = [fd](std::uint64_t offset, void* to, std::size_t bytes) {
    return ::pread(fd, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  };
  const std::string id = lotus::detail::read_build_id(0, read).digits;
  ::close(fd);
  return id;
}

bool is_same_build(const std::string& path, const std::string& build) {
  if (build.empty()) return true;
  const std::string now = build_id_of(path);
  return now.empty() || now == build;
}

}  // namespace lotus::tool
