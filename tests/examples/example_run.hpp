// Runs the example pipelines for tests and reads their logs.
#ifndef LOTUS_TESTS_EXAMPLE_RUN_HPP
#define LOTUS_TESTS_EXAMPLE_RUN_HPP

#include <sys/wait.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace example_run {

namespace fs = std::filesystem;
using support::log_line;
using support::side_log_line;

inline int status_of(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

inline std::string text_of(const fs::path& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

/// One run of an example program, in a new folder.
class example {
 public:
  /// @param arguments  arguments of the program as shell words.
  explicit example(const char* program, const std::string& arguments = "") {
    const std::string command = "cd " + quoted(folder_.path().string()) + " && " + quoted(program) +
                                ' ' + arguments + " > said 2>&1";
    REQUIRE(status_of(command) == 0);
  }

  fs::path run() const { return folder_.path() / "run"; }
  std::vector<log_line> logs() const { return support::read_logs(run()); }
  std::vector<side_log_line> side_lines(const std::string& kind) const {
    return support::read_side_log(run(), kind);
  }

#ifdef LOTUS_TOOL_PROGRAM
  /// Returns the output of lotus-tool. Fails the test if the tool fails.
  /// @param arguments  arguments of lotus-tool as shell words.
  std::string tool_output(const std::string& arguments) const {
    const std::string command = "cd " + quoted(folder_.path().string()) +
                                " && '" LOTUS_TOOL_PROGRAM "' " + arguments + " > tool";
    CHECK(status_of(command) == 0);
    return text_of(folder_.path() / "tool");
  }
#endif

  /// Checks that lotus-tool can read the run.
  void check_tool() const {
#ifdef LOTUS_TOOL_PROGRAM
    CHECK_FALSE(tool_output("stats --strict run").empty());
    tool_output("viz run -o trace.json");
    CHECK(fs::file_size(folder_.path() / "trace.json") > 1000);
#endif
  }

 private:
  support::temp_directory folder_;
};

/// Returns the numbers that follow a name in the logs, sorted: SBatchWait_3 and SBatchWait_0 give
/// {0, 3}.
inline std::vector<std::uint64_t> numbers_of(const std::vector<log_line>& lines,
                                             const std::string& name) {
  std::vector<std::uint64_t> numbers;
  for (const log_line& l : lines) {
    if (l.name.rfind(name + '_', 0) == 0)
      numbers.push_back(std::stoull(l.name.substr(name.size() + 1)));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// Returns the numbers below `count`, each of them `times` times.
inline std::vector<std::uint64_t> all_below(std::uint64_t count, int times = 1) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < count; ++i)
    numbers.insert(numbers.end(), static_cast<std::size_t>(times), i);
  return numbers;
}

/// Returns the lines of a side log that have this name, such as all spans of one stage. Groups them
/// by the number in their last column, such as the number of the batch.
inline std::map<std::int64_t, std::vector<side_log_line>> by_number(
    const std::vector<side_log_line>& lines, const std::string& name) {
  std::map<std::int64_t, std::vector<side_log_line>> found;
  for (const side_log_line& l : lines) {
    if (l.name == name) found[l.b].push_back(l);
  }
  return found;
}

inline std::size_t named(const std::vector<log_line>& lines, const std::string& name) {
  return support::count_named(lines, name);
}

/// Returns whether every span of `inner` is inside a span of `outer` on the same thread.
inline bool lies_within(const std::vector<log_line>& lines, const std::string& inner,
                        const std::string& outer) {
  return std::all_of(lines.begin(), lines.end(), [&](const log_line& in) {
    return in.name != inner || std::any_of(lines.begin(), lines.end(), [&](const log_line& out) {
             return out.name.rfind(outer, 0) == 0 && out.tid == in.tid &&
                    out.start_ns <= in.start_ns && in.end_ns() <= out.end_ns();
           });
  });
}

}  // namespace example_run

#endif  // LOTUS_TESTS_EXAMPLE_RUN_HPP
