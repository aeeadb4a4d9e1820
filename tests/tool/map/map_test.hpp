// What the tests of collectors and of map's runs share.
#ifndef LOTUS_TESTS_MAP_TEST_HPP
#define LOTUS_TESTS_MAP_TEST_HPP

#include <string>
#include <utility>
#include <vector>

#include "tool/tool_test.hpp"

namespace lotus::map_test {

using environment = std::vector<std::pair<std::string, std::string>>;

/// Runs a program with additions to its environment; PATH may be one.
tool_test::result execute(const std::vector<std::string>& arguments, const environment& added = {});

/// Whether this process may sample itself: not in most containers.
bool sampling_allowed();

/// Whether a program is installed.
bool installed(const std::string& program);

}  // namespace lotus::map_test

#endif  // LOTUS_TESTS_MAP_TEST_HPP
