// Loads the report's page in a headless browser.
#ifndef LOTUS_TESTS_BROWSER_HPP
#define LOTUS_TESTS_BROWSER_HPP

#include <cstddef>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "page_scripts.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

/// Loads the page in a browser, where it must cause no errors. Returns the results of a probe
/// script by key; none if no browser is installed.
/// @param script  a script that is added to the end of the page. It must create an element "probed"
///   with lines "key=value", one of which tells the `errors`.
/// @param hash    the fragment of the address, including the character #.
/// @param flags   further flags of the browser.
inline std::map<std::string, std::string> browse(const temp_dir& dir, const std::string& page,
                                                 int width, const std::string& script,
                                                 const std::string& hash = "",
                                                 const std::string& flags = "") {
  const std::string chromium = LOTUS_CHROMIUM;
  if (chromium.empty()) {
    lotus_test::skip("no chromium to load the page");
    return {};
  }
  std::string text = read_file(page);
  text.insert(text.find("<head>") + 6, watch);
  text.insert(text.rfind("</body>"), script);
  const std::string copy = dir.file("probed.html", text);
  const std::string command =
      "timeout 120 '" + chromium +
      "' --headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
      "--disable-background-networking --disable-component-update --disable-sync "
      "--disable-dev-shm-usage --user-data-dir='" +
      dir.path() + "/profile' --window-size=" + std::to_string(width) + ",900 " + flags +
      " --virtual-time-budget=20000 --dump-dom 'file://" + copy + hash + "' 2>'" + dir.path() +
      "/chromium.err' >'" + dir.path() + "/dom'";
  const int status = std::system(command.c_str());
  INFO(read_file(dir.path() + "/chromium.err"));
  REQUIRE(status == 0);
  const std::string dom = read_file(dir.path() + "/dom");
  const std::size_t at = dom.find("id=\"probed\"");
  REQUIRE(at != std::string::npos);
  std::map<std::string, std::string> found;
  std::istringstream lines(dom.substr(at));
  std::string line;
  while (std::getline(lines, line)) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) found[line.substr(0, equals)] = line.substr(equals + 1);
  }
  CHECK(found["errors"] == "none");
  return found;
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_BROWSER_HPP
