#include "base/files/spill_file.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/errors.hpp"

namespace lotus::tool {
namespace {

int make_nameless(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
  if (fd >= 0) return fd;
  std::string name = folder + "/.lotus_tool_XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

}  // namespace

spill_file::~spill_file() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool spill_file::is_open() {
  if (descriptor_ >= 0 || failed_) return !failed_;
  const char* const wanted = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
  if (wanted != nullptr && *wanted != '\0') descriptor_ = make_nameless(wanted);
  if (descriptor_ < 0) descriptor_ = make_nameless("/var/tmp");
  failed_ = descriptor_ < 0;
  return !failed_;
}

std::optional<std::uint64_t> spill_file::put(std::string_view bytes) {
  std::uint64_t at = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_open()) return std::nullopt;
    at = used_;
    used_ += bytes.size();
  }
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const std::lock_guard<std::mutex> lock(mutex_);
      failed_ = true;
      return std::nullopt;
    }
    done += static_cast<std::size_t>(n);
  }
  return at;
}

void spill_file::get(std::uint64_t at, char* to, std::size_t bytes) const {
  while (bytes > 0) {
    const ssize_t n = ::pread(descriptor_, to, bytes, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      throw input_error(std::string("a temporary file cannot be read: ") +
                        std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
    }
    to += n;
    at += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
}

}  // namespace lotus::tool
