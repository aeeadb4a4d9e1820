// Declares functions that the tests of stats share.
#ifndef LOTUS_TESTS_STATS_TEST_HPP
#define LOTUS_TESTS_STATS_TEST_HPP

#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

/// Returns the output of `stats --json` for a folder.
inline json stats(const std::string& dir, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"stats", dir, "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return parse_json(run_well(arguments).out);
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_STATS_TEST_HPP
