// Runs small programs and the tool in a shell, as people do.
#ifndef LOTUS_TESTS_TOOL_SLIPS_TOOL_SHELL_HPP
#define LOTUS_TESTS_TOOL_SLIPS_TOOL_SHELL_HPP

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "catch.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

/// Runs a command in `dir`. In the command, `lotus-tool` is the tool and `program` is slip_program.
inline result shell(const temp_dir& dir, const std::string& command) {
  const std::string all = "cd '" + dir.path() +
                          "' && unset LOTUS_LOG_FILE\n"
                          "PATH=$(dirname '" LOTUS_TOOL_PROGRAM
                          "'):$PATH\n"
                          "program() { '" LOTUS_SLIP_PROGRAM
                          "' \"$@\"; }\n"
                          "{ " +
                          command + "\n} >.out 2>.err";
  const int status = std::system(all.c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), read_file(dir.path() + "/.out"), read_file(dir.path() + "/.err")};
}

/// Runs the program `slip`, which records into `run`, and returns the output of the tool's
/// `command`.
inline result recorded(const temp_dir& dir, const std::string& slip, const std::string& command) {
  const result program = shell(dir, "program " + slip + " run/lotustrace_log");
  INFO(program.err);
  REQUIRE(program.status == 0);
  return shell(dir, "lotus-tool " + command);
}

/// Measures how many CPUs the processes use that are not children of this one.
class other_programs {
 public:
  /// Returns the mean since this object was made.
  double cpus() const {
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began_;
    return (of_all() - of_children() - before_s_) / wall.count();
  }

 private:
  static double of_all() {
    std::ifstream stat("/proc/stat");
    std::string cpu;
    double user = 0, nice = 0, system = 0;
    stat >> cpu >> user >> nice >> system;
    return (user + nice + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  static double of_children() {
    rusage used{};
    getrusage(RUSAGE_CHILDREN, &used);
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  }

  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  double before_s_ = of_all() - of_children();
};

/// Like recorded(), but records again while other programs use the CPUs. Returns nothing, and skips
/// the test, if they do not stop.
inline std::optional<result> recorded_in_peace(const temp_dir& dir, const std::string& slip,
                                               const std::string& command) {
  for (int time = 0; time < 8; ++time) {
    const other_programs others;
    result r = recorded(dir, slip, command);
    if (others.cpus() < 0.3) return r;
    std::filesystem::remove_all(dir.path() + "/run");
  }
  lotus_test::skip("other programs use the CPUs");
  return std::nullopt;
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_TOOL_SLIPS_TOOL_SHELL_HPP
