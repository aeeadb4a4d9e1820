// Declares functions that the tests of stats share.
#pragma once

#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

/// Returns the output of `stats --json` for a folder.
inline json stats(const std::string& dir, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"stats", dir, "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const result r = run(arguments);
  INFO(r.err);
  REQUIRE(r.status == 0);
  return parse_json(r.out);
}

}  // namespace lotus::tool_test
