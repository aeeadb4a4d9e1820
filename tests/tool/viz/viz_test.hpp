// Declares functions that the tests of viz share.
#ifndef LOTUS_TESTS_VIZ_TEST_HPP
#define LOTUS_TESTS_VIZ_TEST_HPP

#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

/// Returns the output of `viz` for a folder.
inline std::string drawn(const std::string& dir, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"viz", dir, "-o", "-", "-q"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_well(arguments).out;
}

/// Like drawn(), as JSON.
inline json draw(const std::string& dir, const std::vector<std::string>& more = {}) {
  return parse_json(drawn(dir, more));
}

/// Returns an event's name followed by its number, which is an argument: "BatchWait_0", "Decode_2",
/// "Crop".
inline std::string numbered(const json& event) {
  std::string name = event["name"].text();
  if (!event.has("args")) return name;
  for (const auto* number : {"item", "batch", "number"}) {
    if (event["args"].has(number)) {
      return name + '_' + std::to_string(event["args"][number].integer());
    }
  }
  return name;
}

inline std::vector<json> named(const json& document, const std::string& name) {
  std::vector<json> found;
  for (const json& event : document["traceEvents"].array()) {
    if (numbered(event) == name) found.push_back(event);
  }
  return found;
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_VIZ_TEST_HPP
