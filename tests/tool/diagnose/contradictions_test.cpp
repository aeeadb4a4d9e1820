// Tests for every recording of the repository that diagnose and whatif claim nothing that the same
// recording forbids.
#include "tool/diagnose/contradictions.hpp"

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "findings/screen/first_screen.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;
namespace fs = std::filesystem;

TEST_CASE("a critical path without the stage that always works is not shown") {
  using lotus::tool::path_kind;
  lotus::tool::stage_figures process;
  process.stage = lotus::tool::stage_id{1};
  process.name = "Process";
  process.slots = 2;
  process.self_ns = 2 * 999;
  lotus::tool::critical_path path;
  path.run_ns = 1000;
  const auto rows = [&](std::int64_t outside, path_kind kind, const std::string& name) {
    path.shares = {{path_kind::unrecorded, "", outside, {}, 0, 0, {}},
                   {kind, name, path.run_ns - outside, {}, 0, 0, {}}};
    return lotus::tool::path_rows(path, {process}, 5).size();
  };
  CHECK(rows(960, path_kind::stage, "Process") == 0);
  CHECK(rows(500, path_kind::stage, "Write") == 0);
  CHECK(rows(940, path_kind::stage, "Process") == 2);
  CHECK(rows(500, path_kind::operation, "Decode") == 2);
  process.self_ns = 2 * 500;
  CHECK(rows(960, path_kind::stage, "Process") == 2);
}

TEST_CASE("no diagnosis contradicts its recording") {
  std::set<std::string> folders;
  for (const std::string& root : {traces(), std::string(LOTUS_TEST_SAMPLES), shared_traces()}) {
    if (root.empty()) continue;
    for (const auto& file : fs::recursive_directory_iterator(root)) {
      if (contains(file.path().filename().string(), "_log")) {
        folders.insert(file.path().parent_path().string());
      }
    }
  }
  CHECK(folders.size() >= 2);
  std::size_t judged = 0;
  for (const std::string& folder : folders) {
    const result r = run({"diagnose", folder, "--json", "-q"});
    if (r.status != 0) continue;  // not every folder has one run
    const json document = parse_json(r.out);
    if (document.has("runs")) continue;
    INFO(folder);
    ++judged;
    CHECK(contradictions(document, folder) == std::vector<std::string>());
    CHECK(forbidden_predictions(document, folder) == std::vector<std::string>());
  }
  CHECK(judged >= 2);
}
