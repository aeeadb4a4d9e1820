#include "log/folder/new_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/base/environment.hpp"

namespace lotus::tool {
namespace fs = std::filesystem;

std::string unused_folder(const std::string& name) {
  std::error_code ignored;
  std::string dir = name;
  for (int next = 2; fs::exists(dir, ignored) && !fs::is_empty(dir, ignored); ++next) {
    dir = name + '-' + std::to_string(next);
  }
  return dir;
}

new_run place_for_logs(const std::string& dir) {
  new_run run;
  run.prefix = default_prefix;
  const char* const set = detail::environment_text(detail::variable::log_file);
  if (dir.empty() && set != nullptr) {
    const fs::path logs = set;
    run.dir = logs.has_parent_path() ? logs.parent_path().string() : ".";
    run.prefix = logs.filename().string();
    return run;
  }
  run.dir = dir.empty() ? unused_folder("run") : dir;
  run.environment.emplace_back("LOTUS_LOG_FILE", run.dir + '/' + run.prefix);
  return run;
}

start_list::start_list() {
  std::error_code error;
  path_ = (fs::temp_directory_path(error) / "lotus_starts_XXXXXX").string();
  const int fd = error ? -1 : mkstemp(path_.data());
  if (fd < 0) {
    throw input_error(path_ + ": " + std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  }
  close(fd);
}

start_list::~start_list() {
  unlink(path_.c_str());
}

std::vector<std::pair<std::string, std::string>> start_list::places() const {
  std::vector<std::pair<std::string, std::string>> all;
  std::ifstream in(path_);
  std::error_code error;
  const fs::path here = fs::current_path(error);
  for (std::string line; std::getline(in, line);) {
    const fs::path logs = fs::path(line).lexically_normal();
    const fs::path below = logs.parent_path().lexically_relative(here);
    const bool is_below = !error && !below.empty() && *below.begin() != "..";
    const std::pair<std::string, std::string> place(
        (is_below ? below : logs.parent_path()).string(), logs.filename().string());
    all.erase(std::remove(all.begin(), all.end(), place), all.end());
    all.push_back(place);
  }
  return all;
}

}  // namespace lotus::tool
