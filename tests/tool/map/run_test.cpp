// Tests lotus-tool map run, which runs a probe program and samples its operations, with the
// built-in collector.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "commands/map/map_run.hpp"
#include "map_test.hpp"
#include "run_place.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::map_test;
using namespace lotus::tool_test;

TEST_CASE("runs_needed computes how often a probe must run") {
  using lotus::tool::runs_needed;
  CHECK(runs_needed(0.75, 0.66e6, 10e6) == 20);  // the example in the Lotus paper
  CHECK(runs_needed(0.99, 0.3e6, 1e6) == 13);
  CHECK(runs_needed(0.99, 2e6, 1e6) == 1);
  CHECK(runs_needed(0.01, 0.9e6, 1e6) == 1);
  CHECK(runs_needed(0.75, 0.66e6, 1e6) == 2);  // one run reaches 66 %
  for (const double confidence : {0.5, 0.75, 0.9, 0.99, 0.999}) {
    for (const double span_ns : {0.02e6, 0.1e6, 0.3e6, 0.5e6, 0.66e6, 0.9e6}) {
      const auto runs = static_cast<double>(runs_needed(confidence, span_ns, 1e6));
      const double hit = span_ns / 1e6;
      CHECK(std::pow(1 - hit, runs) <= 1.05 * (1 - confidence));
      if (runs > 1) CHECK(std::pow(1 - hit, runs - 1) > 1.05 * (1 - confidence));
    }
  }
}

TEST_CASE("the built-in collector finds static functions, and only those of the region") {
  if (!sampling_allowed()) return;
  const place p;
  const result r = p.run({"--runs", "3"});
  INFO(r.err);
  REQUIRE(r.status == 0);
  CHECK(contains(r.err, "run 3 of 3"));
  CHECK(p.functions("Beta") == names{"hot_beta|the probe", "shared_part|the probe"});
  CHECK(p.functions(awkward) == names{"hot_gamma|the probe", "shared_part|the probe"});
  CHECK(p.functions("Empty").empty());
  const auto json = parse_json(read_file(p.folder + "/m.json"));
  CHECK(json["common_funcs_to_op"].size() == 1);
  // With debug information, the tool also finds the functions that were inlined.
  const auto hot = json["functions"][awkward].members().front().value;
  REQUIRE(hot.has("inlined"));
  CHECK(contains(hot["inlined"].members().front().name, "arithmetic"));
  CHECK(std::filesystem::exists(p.folder + "/m_reports/3"));
}

TEST_CASE("a probe may have the same name as the library's threads") {
  if (!sampling_allowed()) return;
  place at;
  std::filesystem::rename(at.probe, at.folder + "/lotus-probe");
  at.probe = at.folder + "/lotus-probe";
  CHECK(at.run({"--runs", "2", "--op", "Beta"}).status == 0);
  CHECK(at.functions("Beta").count("hot_beta|lotus-probe") == 1);
}

TEST_CASE("--op selects one operation, and an unknown one is reported") {
  if (!sampling_allowed()) return;
  const place p;
  CHECK(p.run({"--runs", "1", "--op", "Beta"}).status == 0);
  CHECK(parse_json(read_file(p.folder + "/m.json"))["op_to_func"].size() == 1);
  const result r = p.run({"--runs", "1", "--op", "Nothing"});
  CHECK(r.status == 1);
  CHECK(contains(r.err, "entered no LOTUS_MAP_REGION \"Nothing\""));
}

TEST_CASE("a stripped probe is reported as stripped") {
  if (!sampling_allowed() || !installed("strip")) return;
  const place p;
  REQUIRE(execute({"strip", p.probe}).status == 0);
  const result r = p.run({"--runs", "1"});
  CHECK(r.status == 0);
  CHECK(contains(r.err, "the probe: it is stripped"));
  CHECK(p.functions("Beta") == names{"[no symbols]|the probe"});
}

TEST_CASE("symbols are read from a separate debug file") {
  if (!sampling_allowed() || !installed("objcopy")) return;
  const place p;
  REQUIRE(execute({"objcopy", "--only-keep-debug", p.probe, p.probe + ".debug"}).status == 0);
  REQUIRE(execute({"strip", p.probe}).status == 0);
  REQUIRE(execute({"objcopy", "--add-gnu-debuglink=" + p.probe + ".debug", p.probe}).status == 0);
  const result r = p.run({"--runs", "1"});
  CHECK(r.status == 0);
  CHECK_FALSE(contains(r.err, "stripped"));
  CHECK(p.functions("Beta") == names{"hot_beta|the probe", "shared_part|the probe"});
}

TEST_CASE("samples of a probe that records nothing are stored with the reports") {
  if (!sampling_allowed()) return;
  const place p;
  const temp_dir current;
  const std::string run = "cd \"$2\"; exec \"$0\" map run -q --runs 2 -- \"$1\" by_hand";
  const result r = execute({"sh", "-c", run, LOTUS_TOOL_PROGRAM, LOTUS_MAP_PROBE, current.path()});
  CHECK(r.status == 1);
  CHECK(contains(r.err, "nothing was collected; it must enter a LOTUS_MAP_REGION"));
  CHECK(current.names() == std::vector<std::string>{"mapping_funcs_reports"});
}

TEST_CASE("a program that cannot be run is reported in one line") {
  const place p;
  const result missing = run(
      {"map", "run", "-q", "--runs", "1", "--reports", p.folder + "/r", "--", "/no/such/probe"});
  CHECK(missing.status == 1);
  CHECK(missing.err == "lotus-tool: /no/such/probe: cannot be run: No such file or directory\n");
  CHECK_FALSE(std::filesystem::exists(p.folder + "/r"));
  const result failing = p.run({"-q", "--runs", "1"}, {}, "exit");
  CHECK(failing.status == 1);
  CHECK(run({"map", "run", "--collector", "gprof", "--", "x"}).status == 2);
  CHECK(run({"map", "run", "--confidence", "1.5", "--", "x"}).status == 2);
  CHECK(run({"map", "run"}).status == 2);
}

TEST_CASE("--rate accepts 1 to 100000 Hz") {
  for (const std::string command : {"run", "record"}) {
    for (const std::string rate : {"0.5", "nan", "0", "-1", "100001", "1kHz", ""}) {
      const result r = run({"map", command, "--rate", rate, "--", "/no/such/probe"});
      INFO(command << ' ' << rate);
      CHECK(r.status == 2);
      CHECK(contains(r.err, "'" + rate + "' is no rate between 1 and 100000 Hz"));
    }
  }
}

TEST_CASE("if sampling is forbidden, map run starts the probe once and says what to change") {
  const place p;
  std::vector<std::string> all{LOTUS_TOOL_PROGRAM,   "map", "run",   "--runs",  "3",   "-o",
                               p.folder + "/m.json", "--",  p.probe, "seccomp", "flow"};
  const result r = execute(all);
  CHECK(r.status == 1);
  CHECK(contains(r.err, "kernel.perf_event_paranoid"));
  CHECK(contains(r.err, "nothing was collected; the messages above say why\n"));
  CHECK_FALSE(contains(r.err, "run 2 of 3"));
  CHECK_FALSE(std::filesystem::exists(p.folder + "/m_reports"));
}

TEST_CASE("Ctrl-C leaves no process running") {
  const place p;
  const std::string id = p.probe;
  const pid_t tool = ::fork();
  if (tool == 0) {
    ::execl(LOTUS_TOOL_PROGRAM, LOTUS_TOOL_PROGRAM, "map", "run", "-q", "--runs", "1", "--reports",
            (p.folder + "/r").c_str(), "--", id.c_str(), "sleep", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  const auto running = [&id] {
    int count = 0;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      std::ifstream in(entry.path() / "cmdline");
      std::string command;
      if (std::getline(in, command, '\0') && command == id) ++count;
    }
    return count;
  };
  for (int i = 0; i < 500 && running() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  REQUIRE(running() == 1);
  ::kill(tool, SIGINT);
  int status = 0;
  ::waitpid(tool, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(running() == 0);
}
