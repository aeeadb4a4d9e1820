// What tests of viz share.
#ifndef LOTUS_TESTS_VIZ_TEST_HPP
#define LOTUS_TESTS_VIZ_TEST_HPP

#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

/// What `viz` draws of a folder, as Chrome reads it.
inline json draw(const std::string& dir, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"viz", dir, "-o", "-"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const result r = run(arguments);
  INFO(r.err);
  REQUIRE(r.status == 0);
  return parse_json(r.out);
}

/// The events of this name.
inline std::vector<json> named(const json& document, const std::string& name) {
  std::vector<json> found;
  for (const json& event : document["traceEvents"].array()) {
    if (event["name"].text() == name) found.push_back(event);
  }
  return found;
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_VIZ_TEST_HPP
