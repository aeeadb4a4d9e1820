// Tests for every recording of the repository that diagnose and whatif claim nothing that the same
// recording forbids.
#include "tool/diagnose/contradictions.hpp"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;
namespace fs = std::filesystem;

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
