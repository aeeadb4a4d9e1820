// Declares functions that the tests of the report share.
#ifndef LOTUS_TESTS_REPORT_TEST_HPP
#define LOTUS_TESTS_REPORT_TEST_HPP

#include <cstddef>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

/// Writes a report about `runs` into `dir`. Returns its path.
inline std::string report(const temp_dir& dir, const std::string& runs,
                          const std::vector<std::string>& more = {}) {
  std::string page = dir.path() + "/report.html";
  std::vector<std::string> arguments{"report", runs, "-o", page};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const result r = run_well(arguments);
  return page;
}

/// Returns the data of the page as JSON.
/// @param id  "first" for the data of the first screen, "data" for all other data.
inline json page_data(const std::string& path, const std::string& id = "data") {
  const std::string text = read_file(path);
  const std::string start = "id=\"" + id + "\">";
  const std::size_t begin = text.find(start) + start.size();
  return parse_json(text.substr(begin, text.find("</script>", begin) - begin));
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_REPORT_TEST_HPP
