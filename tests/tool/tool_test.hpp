// Declares what all tests of the tool share: paths, files, running a command, reading JSON.
#ifndef LOTUS_TESTS_TOOL_TEST_HPP
#define LOTUS_TESTS_TOOL_TEST_HPP

#include <string>
#include <string_view>
#include <vector>

#include "tool/json.hpp"

namespace lotus::tool_test {

/// Returns the folder with the traces that are part of this repository.
std::string traces();

/// Returns the folder of a larger set of real traces outside of the repository; "" if it does not
/// exist.
std::string shared_traces();

/// A new directory; the destructor removes it and its contents.
class temp_dir {
 public:
  temp_dir();
  temp_dir(const temp_dir&) = delete;
  temp_dir& operator=(const temp_dir&) = delete;
  ~temp_dir();

  const std::string& path() const noexcept { return path_; }
  /// Writes a file in the directory, and creates the folders for it. Returns the file's path.
  std::string file(const std::string& name, std::string_view text) const;
  /// Returns the sorted names of all files in the directory, including hidden files.
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

/// Runs a command of the tool in this process, as in run({"viz", dir, "-o", file}).
result run(const std::vector<std::string>& arguments);
/// Runs a command that must succeed; otherwise, the test fails.
result run_well(const std::vector<std::string>& arguments);

/// Parses `text`. Fails the test if `text` is not valid JSON.
json parse_json(const std::string& text);

/// Returns the sorted events of a Chrome trace, each one as json::canonical().
std::vector<std::string> sorted_events(const std::string& text);

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_TOOL_TEST_HPP
