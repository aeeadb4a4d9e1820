#include "commands/launch.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/child_process.hpp"
#include "base/errors.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/base/environment.hpp"

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

std::string memory_library() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path library =
      program.parent_path().parent_path() / LOTUS_TOOL_LIBDIR / "lotus/preload/liblotus_memory.so";
  if (!error && fs::exists(library, error)) return library.string();
  throw input_error("--memory needs " + library.string() + ", which is not there");
}

launched launch(const launch_options& options) {
  launched run;
  run.prefix = default_prefix;
  const char* const set = detail::environment_text(detail::variable::log_file);
  command what;
  what.arguments = options.program;
  if (options.dir.empty() && set != nullptr) {
    const fs::path logs = set;
    run.dir = logs.has_parent_path() ? logs.parent_path().string() : ".";
    run.prefix = logs.filename().string();
  } else {
    run.dir = options.dir.empty() ? folder_without_logs() : options.dir;
    what.environment.emplace_back("LOTUS_LOG_FILE", run.dir + '/' + run.prefix);
  }
  if (options.memory) {
    // First, so that what the program itself is started with is counted too.
    const char* const others = std::getenv("LD_PRELOAD");
    const std::string behind =
        others == nullptr || *others == '\0' ? "" : std::string(":") + others;
    what.environment.emplace_back("LD_PRELOAD", memory_library() + behind);
  }
  child_process child(what);
  child.go();
  child.ended(-1);
  run.status = child.state().status;
  return run;
}

}  // namespace lotus::tool
