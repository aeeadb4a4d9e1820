// Tests the exit statuses of lotus-tool, and its output to stdout and stderr.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>

#include "base/terminal/line_width.hpp"
#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Runs lotus-tool in a shell; its stdout and stderr go to files in `dir`.
result call(const temp_dir& dir, const std::string& arguments) {
  const std::string command = std::string("'") + LOTUS_TOOL_PROGRAM + "' " + arguments + " >'" +
                              dir.path() + "/out' 2>'" + dir.path() + "/err'";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), read_file(dir.path() + "/out"), read_file(dir.path() + "/err")};
}

}  // namespace

TEST_CASE("incorrect use exits with status 2 and a message on stderr") {
  const temp_dir dir;
  for (const auto* arguments :
       {"", "nonsense", "viz", "viz x --format nonsense", "stats", "stats x --nonsense"}) {
    INFO(arguments);
    const result r = call(dir, arguments);
    CHECK(r.status == 2);
    CHECK(r.out.empty());
    CHECK_FALSE(r.err.empty());
  }
}

TEST_CASE("the message about an invalid argument is one line that names the argument") {
  const temp_dir dir;
  const struct {
    const char* arguments;
    const char* diagnostics;
  } cases[] = {
      {"stat x", "'stat' is not a command; did you mean 'stats'?"},
      {"map jion x", "'jion' is not a command; did you mean 'join'?"},
      {"viz x --format foo", "--format: 'foo' is not one of chrome, perfetto"},
      {"stats x --skip-batches -3", "--skip-batches: '-3' is not a whole number of at least 0"},
      {"map run --runs 0 -- x", "--runs: '0' is not a whole number of at least 1"},
      {"viz", "DIR is required"},
      {"help stat", "'stat' is not a command; did you mean 'stats'?"},
      {"stats x --skp-batches 3",
       "'--skp-batches' is not an option of 'stats'; did you mean '--skip-batches'?"},
      {"map join x --quite", "'--quite' is not an option of 'map join'; did you mean '--quiet'?"},
      {"stats x --zzzzzzzz=1",
       "'--zzzzzzzz' is not an option of 'stats'; see 'lotus-tool stats --help'"},
      {"stats x --details",
       "'--details' is not an option of 'stats', but of 'diagnose'; see 'lotus-tool stats "
       "--help'"},
      {"diagnose x --collector perf",
       "'--collector' is not an option of 'diagnose', but of 'map run'; see 'lotus-tool diagnose "
       "--help'"},
  };
  for (const auto& c : cases) {
    const result r = call(dir, c.arguments);
    CHECK(r.status == 2);
    INFO(r.err);
    CHECK(contains(r.err, std::string("lotus-tool: ") + c.diagnostics));
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  }
}

TEST_CASE("every command exits with status 1 if stdout cannot be written") {
  const temp_dir dir;
  const std::string run_folder = " '" + traces() + "/quirks/good'";
  for (const std::string& command :
       {"stats" + run_folder, "diagnose" + run_folder, std::string("man"), std::string("--help")}) {
    INFO(command);
    const std::string line = std::string("'") + LOTUS_TOOL_PROGRAM + "' " + command +
                             " >/dev/full 2>'" + dir.path() + "/err'";
    CHECK(WEXITSTATUS(std::system(line.c_str())) == 1);
    CHECK(contains(read_file(dir.path() + "/err"), "standard output: cannot be written"));
  }
}

TEST_CASE("viz without an output is incorrect use") {
  const temp_dir dir;
  const result r = call(dir, "viz '" + traces() + "/quirks/good'");
  CHECK(r.status == 2);
  CHECK(contains(r.err, "-o FILE"));
}

TEST_CASE("help and version go to stdout") {
  const temp_dir dir;
  CHECK(contains(call(dir, "--version").out, "lotus-tool "));
  for (const std::string command : {"viz", "stats", "diagnose", "compare"}) {
    const result r = call(dir, command + " --help");
    CHECK(r.status == 0);
    CHECK(r.err.empty());
    CHECK(contains(r.out, "Example"));
    CHECK(contains(r.out, "lotus-tool " + command));
    // An empty line separates the examples from the text that follows.
    const std::string examples = r.out.substr(r.out.find("Example"));
    const std::size_t end = examples.find("\n\n");
    REQUIRE(end != std::string::npos);
    CHECK(contains(examples.substr(0, end), "\n  lotus-tool " + command));
    CHECK_FALSE(contains(examples.substr(end + 2), "\n  lotus-tool " + command));
  }
}

TEST_CASE("without a command, the list of commands goes to stderr with status 2") {
  const temp_dir dir;
  const result r = call(dir, "");
  CHECK(r.status == 2);
  CHECK(r.out.empty());
  CHECK(r.err.find("Usage: lotus-tool ") == 0);
  for (const auto* command : {"viz ", "stats ", "compare ", "help "}) {
    CHECK(contains(r.err, std::string("\n  ") + command));
  }
  CHECK(call(dir, "help").out == call(dir, "--help").out);
  CHECK(call(dir, "help").out == r.err);
}

TEST_CASE("an option that lotus-tool itself lacks, and an option without its value, are named") {
  const temp_dir dir;
  const result unknown = call(dir, "--helpp");
  CHECK(unknown.status == 2);
  CHECK(
      contains(unknown.err, "'--helpp' is not an option of 'lotus-tool'; did you mean '--help'?"));
  const result missing = call(dir, "whatif run --without");
  CHECK(missing.status == 2);
  CHECK(contains(missing.err, "--without needs a value; see 'lotus-tool whatif --help'"));
}

TEST_CASE("help COMMAND prints the same as COMMAND --help, in 80 columns, with the usage first") {
  const temp_dir dir;
  for (const std::string command :
       {"",         "run",         "viz",       "stats",         "map",
        "map run",  "accelerator", "map build", "map attribute", "map record",
        "map join", "diagnose",    "whatif",    "top",           "compare",
        "export",   "unpack",      "snapshot",  "recover",       "completion",
        "threads",  "attach",      "tune",      "schema",        "mcp",
        "man",      "help"}) {
    INFO(command);
    const result r = call(dir, "help " + command);
    CHECK(r.status == 0);
    CHECK(r.err.empty());
    CHECK(r.out.find("Usage: lotus-tool" + (command.empty() ? "" : ' ' + command)) == 0);
    if (command != "help") CHECK(r.out == call(dir, command + " --help").out);
    // These two only list other commands.
    if (!command.empty() && command != "map") CHECK(contains(r.out, "\nExamples:\n"));
    CHECK(contains(r.out, "\nExit status: "));
    CHECK(contains(r.out, "\nDetails:\n  ") ==
          (command != "completion" && command != "man" && command != "help"));
    std::istringstream lines(r.out);
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(lotus::tool::columns_of(line) <= 80);
    }
  }
}

TEST_CASE("bad input exits with status 1 and one line that names it") {
  const temp_dir dir;
  const result r = call(dir, "stats /no/such/folder");
  CHECK(r.status == 1);
  CHECK(r.out.empty());
  CHECK(r.err ==
        "lotus-tool: /no/such/folder: no such directory; give the folder that holds the log "
        "files\n");
}

TEST_CASE("an output in a missing directory exits with status 1") {
  const temp_dir dir;
  const result r =
      call(dir, "viz '" + traces() + "/quirks/good' -o '" + dir.path() + "/no/o.json'");
  CHECK(r.status == 1);
  CHECK(contains(r.err, "there is no directory"));
}

TEST_CASE("a full disk exits with status 1") {
  const temp_dir dir;
  const result r = call(dir, "viz '" + traces() + "/quirks/good' -o /dev/full");
  CHECK(r.status == 1);
  CHECK(contains(r.err, "No space left"));
}

TEST_CASE("a successful command exits with status 0 and prints no message") {
  const temp_dir dir;
  const std::string out = dir.path() + "/trace.json";
  const result r = call(dir, "viz '" + traces() + "/quirks/good' -o '" + out + "'");
  CHECK(r.status == 0);
  CHECK(r.out.empty());
  CHECK(r.err.empty());
  CHECK(parse_json(read_file(out))["traceEvents"].size() > 10);
}
