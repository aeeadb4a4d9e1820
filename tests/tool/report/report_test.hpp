// What the tests of the report share.
#ifndef LOTUS_TESTS_REPORT_TEST_HPP
#define LOTUS_TESTS_REPORT_TEST_HPP

#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

/// Writes a report of `runs` into `dir`; its path.
inline std::string report(const temp_dir& dir, const std::string& runs,
                          const std::vector<std::string>& more = {}) {
  std::string page = dir.path() + "/report.html";
  std::vector<std::string> arguments{"report", runs, "-o", page};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const result r = run(arguments);
  INFO(r.err);
  REQUIRE(r.status == 0);
  return page;
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_REPORT_TEST_HPP
