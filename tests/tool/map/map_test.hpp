// Declares functions that the tests of collectors and of `map run` share.
#ifndef LOTUS_TESTS_MAP_TEST_HPP
#define LOTUS_TESTS_MAP_TEST_HPP

#include <string>
#include <utility>
#include <vector>

#include "tool/tool_test.hpp"

namespace lotus::map_test {

using environment = std::vector<std::pair<std::string, std::string>>;

/// Runs a program with further environment variables, for example PATH.
tool_test::result execute(const std::vector<std::string>& arguments, const environment& added = {});

/// Returns whether this process may sample itself, which most containers do not allow.
bool sampling_allowed();

bool installed(const std::string& program);

}  // namespace lotus::map_test

#endif  // LOTUS_TESTS_MAP_TEST_HPP
