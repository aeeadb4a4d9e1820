// Tests lotus-tool run, which runs and records a program, with a real program.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Runs `lotus-tool run ARGUMENTS` in a shell, in the directory `dir`.
result run_in(const temp_dir& dir, const std::string& arguments) {
  const std::string command = "cd '" + dir.path() + "' && unset LOTUS_LOG_FILE && exec '" +
                              LOTUS_TOOL_PROGRAM + "' run " + arguments + " >out 2>err";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), read_file(dir.path() + "/out"), read_file(dir.path() + "/err")};
}

const std::string program = "-- '" LOTUS_RECORDING_PROGRAM "' ";

}  // namespace

TEST_CASE("run prints a summary, and passes on the program's output and exit status") {
  const temp_dir dir;
  const result r = run_in(dir, program + "7");
  INFO(r.err);
  CHECK(r.status == 7);
  CHECK(r.out == "trained on 7\n");
  CHECK(contains(r.err, "  Read "));
  CHECK(contains(r.err, " batches/s)"));
  CHECK(contains(r.err, "the logs are in run/\n"));
  CHECK(contains(r.err, "'lotus-tool threads run' shows the time of each thread\n"));
  CHECK(std::filesystem::exists(dir.path() + "/run"));
}

TEST_CASE("a second run gets a new directory, and --dir chooses one") {
  const temp_dir dir;
  run_in(dir, program);
  CHECK(contains(run_in(dir, program).err, "the logs are in run-2/\n"));
  CHECK(contains(run_in(dir, "--dir named " + program).err, "the logs are in named/\n"));
  const std::string set = "cd '" + dir.path() + "' && LOTUS_LOG_FILE=set/other '" +
                          LOTUS_TOOL_PROGRAM + "' run " + program + " >out 2>err";
  REQUIRE(std::system(set.c_str()) == 0);
  CHECK(contains(read_file(dir.path() + "/err"), "the logs are in set/\n"));
}

#ifdef LOTUS_TOOL_REPORT
TEST_CASE("run --report also creates the report page") {
  const temp_dir dir;
  const result r = run_in(dir, "-q --report page.html " + program);
  INFO(r.err);
  CHECK(r.status == 0);
  CHECK(contains(read_file(dir.path() + "/page.html"), "SRead"));
  CHECK_FALSE(contains(r.err, "Next:"));
}

TEST_CASE("the report page shows the program's command line as text") {
  const temp_dir dir;
  run_in(dir, "-q --report page.html " + program + "0 '</script>' 'two\nlines %41' " +
                  std::string(1500, 'x'));
  const std::string page = read_file(dir.path() + "/page.html");
  const std::size_t at = page.find("\"commands\":");
  INFO(page.substr(std::min(at, page.size()), 200));
  CHECK(
      contains(page, LOTUS_RECORDING_PROGRAM R"( 0 \u003c/script\u003e two\u000alines %41 xxxx)"));
  CHECK(contains(page, "xxxx...\"]"));
  CHECK_FALSE(contains(page, std::string(1000, 'x')));
}
#endif

TEST_CASE("run reports that the program was killed, and exits with its signal") {
  const temp_dir dir;
  const std::string command = "cd '" + dir.path() + "' && exec '" + LOTUS_TOOL_PROGRAM + "' run " +
                              program + "wait >out 2>err";
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("LOTUS_LOG_FILE");
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  REQUIRE(child > 0);
  const std::string out = dir.path() + "/out";
  for (int i = 0; i < 1000; ++i) {
    if (std::filesystem::exists(out) && contains(read_file(out), "trained")) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGTERM);  // lotus-tool must forward the signal to the program
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGTERM);
  CHECK(contains(read_file(dir.path() + "/err"), "  Read "));
}

TEST_CASE("run reports a program that records nothing or cannot be started in one line") {
  const temp_dir dir;
  const result nothing = run_in(dir, "-- true");
  CHECK(nothing.status == 0);
  CHECK(contains(nothing.err, "executed no marker such as LOTUS_SCOPE"));
  const result missing = run_in(dir, "-- ./nowhere");
  CHECK(missing.status == 1);
  CHECK(contains(missing.err, "./nowhere: cannot be run"));
  CHECK(run_in(dir, "").status == 2);
}
