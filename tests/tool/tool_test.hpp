// What the tests of the tool share: places, files, running a command, reading JSON.
#ifndef LOTUS_TESTS_TOOL_TEST_HPP
#define LOTUS_TESTS_TOOL_TEST_HPP

#include <string>
#include <string_view>
#include <vector>

#include "tool/json.hpp"

namespace lotus::tool_test {

/// Traces that the project brings along.
std::string traces();

/// A larger set of real traces beside the checkout; empty where there is none.
std::string shared_traces();

/// A fresh directory, removed with everything in it at the end.
class temp_dir {
 public:
  temp_dir();
  temp_dir(const temp_dir&) = delete;
  temp_dir& operator=(const temp_dir&) = delete;
  ~temp_dir();

  const std::string& path() const noexcept { return path_; }
  /// Writes a file below it, with the folders it needs; returns its path.
  std::string file(const std::string& name, std::string_view text) const;
  /// Names of the files in it, sorted, "." files included.
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);
bool contains(std::string_view text, std::string_view part);

struct result {
  int status = -1;
  std::string out;
  std::string err;
};

/// Runs a command in this process: run({"viz", dir, "-o", file}).
result run(const std::vector<std::string>& arguments);

/// Fails the test when `text` is not valid JSON.
json parse_json(const std::string& text);

/// The events of a Chrome trace, each as json::canonical(), sorted.
std::vector<std::string> sorted_events(const std::string& text);

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_TOOL_TEST_HPP
