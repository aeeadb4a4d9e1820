#include "commands/launch.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <tuple>

#include "base/child_process.hpp"
#include "base/errors.hpp"
#include "log/folder/new_run.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

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
  const new_run asked = place_for_logs(options.dir);
  const start_list starts;
  launched run;
  run.dir = asked.dir;
  run.prefix = asked.prefix;
  command what;
  what.arguments = options.program;
  what.environment = asked.environment;
  what.environment.emplace_back("LOTUS_RUN_LIST", starts.path());
  if (options.memory) {
    // Our library comes first, so that allocations of other preloaded libraries are counted too.
    const char* const others = std::getenv("LD_PRELOAD");
    const std::string behind =
        others == nullptr || *others == '\0' ? "" : std::string(":") + others;
    what.environment.emplace_back("LD_PRELOAD", memory_library() + behind);
  }
  child_process child(what);
  child.go();
  child.ended(-1);
  run.status = child.state().status;
  // The last entry is the folder that the program chose itself, if it did.
  const auto places = starts.places();
  if (!places.empty()) std::tie(run.dir, run.prefix) = places.back();
  return run;
}

}  // namespace lotus::tool
