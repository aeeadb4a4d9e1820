// Runs a program to its end and counts its allocations.
#ifndef LOTUS_TESTS_COUNTED_RUN_HPP
#define LOTUS_TESTS_COUNTED_RUN_HPP

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "catch.hpp"
#include "tool/json.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

inline json memory_of(const std::string& dir) {
  return parse_json(run_well({"stats", "--json", dir}).out)["runs"][0]["memory"];
}

class counted_run {
 public:
  /// @param before  assignments of shell variables, which come before the command.
  counted_run(const std::string& program, const std::string& arguments,
              const std::string& before = "", bool counted = true) {
    const std::string command = "cd '" + dir_.path() + "' && unset LOTUS_LOG_FILE && " + before +
                                " timeout 120 '" + LOTUS_TOOL_PROGRAM + "' run " +
                                (counted ? "--memory " : "") + "-- '" + program + "' " + arguments +
                                " >out 2>err";
    const int status = std::system(command.c_str());
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  int status() const { return status_; }
  std::string err() const { return read_file(dir_.path() + "/err"); }
  std::string dir() const { return dir_.path() + "/run"; }
  /// The test fails if the program did.
  json memory() const {
    INFO(err());
    REQUIRE(status_ == 0);
    return memory_of(dir());
  }

 private:
  temp_dir dir_;
  int status_ = -1;
};

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_COUNTED_RUN_HPP
