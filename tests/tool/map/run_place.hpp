// Provides a folder in which tests run lotus-tool map run.
#ifndef LOTUS_TESTS_RUN_PLACE_HPP
#define LOTUS_TESTS_RUN_PLACE_HPP

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "map_test.hpp"
#include "tool/tool_test.hpp"

namespace lotus::map_test {

/// The name of one of the probe's regions, with characters that need escaping.
inline const std::string awkward = "../Gamma 100%, \"x\"";

/// A folder whose name contains a blank, with the probe program in it.
struct place {
  tool_test::temp_dir dir;
  std::string folder = dir.path() + "/my work";
  std::string probe = folder + "/the probe";

  place() {
    std::filesystem::create_directory(folder);
    std::filesystem::copy_file(LOTUS_MAP_PROBE, probe);
  }

  tool_test::result run(const std::vector<std::string>& arguments, const environment& added = {},
                        const std::string& mode = "ops") const {
    std::vector<std::string> all{LOTUS_TOOL_PROGRAM, "map", "run", "-o", folder + "/m.json"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), {"--", probe, mode});
    return execute(all, added);
  }

  /// The functions found in the operation, without those that AddressSanitizer calls in the region.
  std::set<std::string> functions(const std::string& op) const {
    std::set<std::string> set;
    const auto json = tool_test::parse_json(tool_test::read_file(folder + "/m.json"));
    for (const auto& f : json["op_to_func"][op].array()) {
      const std::string key = f.text();
      const std::string function = key.substr(key.rfind(':') + 1);
      if (function.rfind("__asan_", 0) != 0) set.insert(function);
    }
    return set;
  }
};

using names = std::set<std::string>;

}  // namespace lotus::map_test

#endif  // LOTUS_TESTS_RUN_PLACE_HPP
