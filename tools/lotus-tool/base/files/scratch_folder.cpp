#include "base/files/scratch_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/files/unfinished.hpp"

namespace lotus::tool {

scratch_folder::scratch_folder(const std::string& parent) {
  unfinished made = make_unfinished_folder(parent, "lotus_tool");
  path_ = std::move(made.path);
  lock_ = made.descriptor;
  if (lock_ < 0) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    throw input_error(parent + ": cannot create a folder in it: " + std::strerror(errno));
  }
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  ::close(lock_);
}

}  // namespace lotus::tool
