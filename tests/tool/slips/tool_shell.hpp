// Runs small programs and the tool in a shell, as people do.
#ifndef LOTUS_TESTS_TOOL_SLIPS_TOOL_SHELL_HPP
#define LOTUS_TESTS_TOOL_SLIPS_TOOL_SHELL_HPP

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
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

/// Like recorded(), but records again if other programs delayed the program so much that there is
/// no verdict.
inline result recorded_in_peace(const temp_dir& dir, const std::string& slip,
                                const std::string& command) {
  for (int more = 8;; --more) {
    const result r = recorded(dir, slip, command);
    if (more == 0 || !contains(r.out, "No verdict: by the recorded times")) return r;
    std::filesystem::remove_all(dir.path() + "/run");
  }
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_TOOL_SLIPS_TOOL_SHELL_HPP
