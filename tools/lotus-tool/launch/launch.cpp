#include "launch/launch.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/child_process.hpp"
#include "log/log_files.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

/// A folder that two runs share would be read as one run.
std::string folder_without_logs() {
  std::error_code ignored;
  std::string dir = "run";
  for (int next = 2; fs::exists(dir, ignored) && !fs::is_empty(dir, ignored); ++next) {
    dir = "run-" + std::to_string(next);
  }
  return dir;
}

}  // namespace

launched launch(const launch_options& options) {
  launched run;
  run.prefix = default_prefix;
  const char* set = std::getenv("LOTUS_LOG_FILE");
  command what;
  what.arguments = options.program;
  if (options.dir.empty() && set != nullptr && *set != '\0') {
    const fs::path logs = set;
    run.dir = logs.has_parent_path() ? logs.parent_path().string() : ".";
    run.prefix = logs.filename().string();
  } else {
    run.dir = options.dir.empty() ? folder_without_logs() : options.dir;
    what.environment.emplace_back("LOTUS_LOG_FILE", run.dir + '/' + run.prefix);
  }
  child_process child(what);
  child.go();
  child.ended(-1);
  run.status = child.state().status;
  return run;
}

}  // namespace lotus::tool
