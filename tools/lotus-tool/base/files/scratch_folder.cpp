#include "base/files/scratch_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/errors.hpp"

namespace lotus::tool {

scratch_folder::scratch_folder(const std::string& parent) : path_(parent + "/.lotus_tool_XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    throw input_error(parent + ": no folder can be made in it: " + std::strerror(errno));
  }
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace lotus::tool
