// lotus-tool map run, with real and stand-in collectors.
#include "map/run.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "map_test.hpp"
#include "tool_test.hpp"

using namespace lotus::map_test;
using namespace lotus::tool_test;

namespace {

const std::string awkward = "../Gamma 100%, \"x\"";

/// A folder with a blank, and the probe in it.
struct place {
  temp_dir dir;
  std::string folder = dir.path() + "/my work";
  std::string probe = folder + "/the probe";

  place() {
    std::filesystem::create_directory(folder);
    std::filesystem::copy_file(LOTUS_MAP_PROBE, probe);
  }

  result run(const std::vector<std::string>& arguments, const environment& added = {},
             const std::string& mode = "ops") const {
    std::vector<std::string> all{LOTUS_TOOL_PROGRAM, "map", "run", "-o", folder + "/m.json"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), {"--", probe, mode});
    return execute(all, added);
  }

  std::set<std::string> functions(const std::string& op) const {
    std::set<std::string> set;
    const auto json = parse_json(read_file(folder + "/m.json"));
    for (const auto& f : json["op_to_func"][op.c_str()].GetArray()) {
      const std::string key = f.GetString();
      set.insert(key.substr(key.rfind(':') + 1));
    }
    return set;
  }
};

using names = std::set<std::string>;

}  // namespace

TEST_CASE("how often a probe must run") {
  using lotus::tool::runs_needed;
  CHECK(runs_needed(0.75, 0.66e6, 10e6) == 20);  // the paper's example
  CHECK(runs_needed(0.99, 0.3e6, 1e6) == 13);
  CHECK(runs_needed(0.99, 2e6, 1e6) == 1);
  CHECK(runs_needed(0.01, 0.9e6, 1e6) == 1);
  CHECK(runs_needed(0.75, 0.66e6, 1e6) == 2);  // one gives 66 %
  for (const double confidence : {0.5, 0.75, 0.9, 0.99, 0.999}) {
    for (const double span_ns : {0.02e6, 0.1e6, 0.3e6, 0.5e6, 0.66e6, 0.9e6}) {
      const auto runs = static_cast<double>(runs_needed(confidence, span_ns, 1e6));
      const double hit = span_ns / 1e6;
      CHECK(std::pow(1 - hit, runs) <= 1.05 * (1 - confidence));
      if (runs > 1) CHECK(std::pow(1 - hit, runs - 1) > 1.05 * (1 - confidence));
    }
  }
}

TEST_CASE("the built-in collector finds static functions, and only the region's") {
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
  CHECK(json["common_funcs_to_op"].MemberCount() == 1);
  // Debug info names what was inlined.
  const auto& hot = json["functions"][awkward.c_str()].MemberBegin()->value;
  REQUIRE(hot.HasMember("inlined"));
  CHECK(contains(hot["inlined"].MemberBegin()->name.GetString(), "arithmetic"));
  CHECK(std::filesystem::exists(p.folder + "/m_reports/3"));
}

TEST_CASE("a probe may be called as threads of the library are") {
  if (!sampling_allowed()) return;
  place at;
  std::filesystem::rename(at.probe, at.folder + "/lotus-probe");
  at.probe = at.folder + "/lotus-probe";
  CHECK(at.run({"--runs", "2", "--op", "Beta"}).status == 0);
  CHECK(at.functions("Beta").count("hot_beta|lotus-probe") == 1);
}

TEST_CASE("--op takes one operation only; an unknown one is said") {
  if (!sampling_allowed()) return;
  const place p;
  CHECK(p.run({"--runs", "1", "--op", "Beta"}).status == 0);
  CHECK(parse_json(read_file(p.folder + "/m.json"))["op_to_func"].MemberCount() == 1);
  const result r = p.run({"--runs", "1", "--op", "Nothing"});
  CHECK(r.status == 1);
  CHECK(contains(r.err, "ran through no LOTUS_MAP_REGION \"Nothing\""));
}

TEST_CASE("a stripped probe is said to be stripped") {
  if (!sampling_allowed() || !installed("strip")) return;
  const place p;
  REQUIRE(execute({"strip", p.probe}).status == 0);
  const result r = p.run({"--runs", "1"});
  CHECK(r.status == 0);
  CHECK(contains(r.err, "the probe: stripped"));
  CHECK(p.functions("Beta") == names{"[no symbols]|the probe"});
}

TEST_CASE("symbols are found in a separate debug file") {
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

TEST_CASE("perf, for real") {
  if (!sampling_allowed() || !installed("perf")) return;
  const place p;
  const result r = p.run({"--collector", "perf", "--runs", "1"});
  INFO(r.err);
  REQUIRE(r.status == 0);
  CHECK(p.functions("Beta").count("hot_beta|the probe") == 1);
  CHECK(p.functions("Beta").count("hot_gamma|the probe") == 0);
  CHECK(p.functions(awkward).count("hot_gamma|the probe") == 1);
}

TEST_CASE("perf, where the place for temporary files has a comma") {
  if (!sampling_allowed() || !installed("perf")) return;
  const place p;
  const std::string comma = p.folder + "/a,b";
  std::filesystem::create_directory(comma);
  const result r =
      p.run({"--collector", "perf", "--runs", "1", "--op", "Beta"}, {{"TMPDIR", comma}});
  INFO(r.err);
  CHECK(r.status == 0);
  CHECK(std::filesystem::is_empty(comma));
}

TEST_CASE("a region that cannot be picked by its name is said to need one") {
  const place p;
  const std::string path = std::string(LOTUS_STAND_IN_COMMANDS) + ':' + std::getenv("PATH");
  const auto collect = [&](const std::string& name) {
    return execute(
        {LOTUS_TOOL_PROGRAM, "map", "run", "-q", "--collector", "vtune", "--runs", "1", "-o",
         p.folder + "/m.json", "--", p.probe, "region", name},
        {{"PATH", path}, {"STAND_IN_LIBRARY", LOTUS_STAND_IN_ITT}, {"LOTUS_MAP_SLEEP_MS", "1"}});
  };
  CHECK(collect(std::string(254, 'n')).status == 0);
  CHECK(collect("").err == "lotus-tool: " + p.probe +
                               ": a region without a name cannot be picked; give it a name of 1 to "
                               "254 bytes, or pick others with --op\n");
  const result lengthy = collect(std::string(300, 'n'));
  CHECK(lengthy.status == 1);
  CHECK(contains(lengthy.err, "n…\" cannot be picked; give it a name of 1 to 254 bytes"));
}

#ifndef LOTUS_TEST_UNDER_SANITIZER  // valgrind does not run what a sanitizer has instrumented
TEST_CASE("callgrind, for real: counts of the region only, exactly the same each time") {
  if (!installed("valgrind")) return;
  const place p;
  const auto count = [&] {
    const result r = p.run({"--collector", "callgrind"});
    INFO(r.err);
    REQUIRE(r.status == 0);
    CHECK(p.functions("Beta").count("hot_gamma()|the probe") == 0);
    const auto json = parse_json(read_file(p.folder + "/m.json"));
    for (const auto& f : json["functions"]["Beta"].GetObject()) {
      if (contains(f.name.GetString(), "hot_beta")) return f.value["samples"].GetDouble();
    }
    return 0.0;
  };
  const double first = count();
  CHECK(first > 8e6);
  CHECK(count() == first);
}

TEST_CASE("callgrind: what names no operation is of none") {
  if (!installed("valgrind")) return;
  const place p;
  const result r = p.run({"--collector", "callgrind"}, {}, "fork_in_region");
  INFO(r.err);
  REQUIRE(r.status == 0);
  CHECK(contains(r.err, "left out what names no operation"));
  CHECK(parse_json(read_file(p.folder + "/m.json"))["op_to_func"].MemberCount() == 1);
  CHECK(p.functions("Forks").count("hot_gamma()|the probe") == 1);
  const result by_hand = p.run({"--collector", "callgrind"}, {}, "by_hand");
  CHECK(by_hand.status == 1);
  CHECK(contains(by_hand.err, "it must run through a LOTUS_MAP_REGION"));
}
#endif

TEST_CASE("stand-ins for vtune and AMDuProfCLI get the documented arguments") {
  const place p;
  const std::string path = std::string(LOTUS_STAND_IN_COMMANDS) + ':' + std::getenv("PATH");
  const result vtune = p.run(
      {"--collector", "vtune", "--runs", "2"},
      {{"PATH", path}, {"STAND_IN_LIBRARY", LOTUS_STAND_IN_ITT}, {"LOTUS_MAP_SLEEP_MS", "1"}});
  INFO(vtune.err);
  REQUIRE(vtune.status == 0);
  CHECK(p.functions("Beta") == names{"hot_Beta|probe", "shared<int, float>|libshared.so.1"});
  const auto json = parse_json(read_file(p.folder + "/m.json"));
  CHECK(json["functions"]["Beta"]["hot_Beta|probe"]["hits"].GetInt() == 2);
  CHECK(json["op_to_func"].HasMember(awkward.c_str()));
  const result uprof = p.run(
      {"--collector", "uprof", "--runs", "1", "--op", "Beta"},
      {{"PATH", path}, {"STAND_IN_LIBRARY", LOTUS_STAND_IN_UPROF}, {"LOTUS_MAP_SLEEP_MS", "1"}});
  INFO(uprof.err);
  REQUIRE(uprof.status == 0);
  CHECK(p.functions("Beta") == names{"hot_Beta|probe"});
}

TEST_CASE("runs are counted for the rate that a collector has") {
  const place p;
  const std::string path = std::string(LOTUS_STAND_IN_COMMANDS) + ':' + std::getenv("PATH");
  const auto collect = [&](const std::string& collector, const std::string& rate) {
    const bool vtune = collector == "vtune";
    const result r =
        p.run({"--collector", collector, "--op", "Beta", "--rate", rate, "--span", "0.9ms",
               "--confidence", "0.9", "--reports", p.folder + '/' + collector + rate},
              {{"PATH", path},
               {"STAND_IN_LIBRARY", vtune ? LOTUS_STAND_IN_ITT : LOTUS_STAND_IN_UPROF},
               {"LOTUS_MAP_SLEEP_MS", "1"}});
    INFO(r.err);
    REQUIRE(r.status == 0);
    return r.err;
  };
  const auto sampling = [&](const std::string& rate) {
    return read_file(p.folder + "/vtune" + rate + "/Beta/.raw_1/result/sampling");
  };
  CHECK(contains(collect("vtune", "1000"), "run 1 of 1\n"));
  CHECK(sampling("1000") == "every 1 ms, told 1000 Hz\n");
  const std::string between = collect("vtune", "400");  // 2.5 ms
  CHECK(contains(between, "warning: --rate 400: vtune takes a sample every 3 ms\n"));
  CHECK(contains(between, "run 1 of 7\n"));
  CHECK(contains(sampling("400"), "every 3 ms, told 333.333"));
  CHECK_FALSE(contains(collect("vtune", "100"), "warning"));
  CHECK(sampling("100") == "every 10 ms, told 100 Hz\n");
  const std::string uprof = collect("uprof", "100");
  CHECK(contains(uprof, "warning: --rate 100: uprof takes a sample every 1 ms\n"));
  CHECK(contains(uprof, "run 1 of 1\n"));
}

TEST_CASE("samples of a probe that records nothing are kept with the reports") {
  if (!sampling_allowed()) return;
  const place p;
  const temp_dir current;
  const std::string run = "cd \"$2\"; exec \"$0\" map run -q --runs 2 -- \"$1\" by_hand";
  const result r = execute({"sh", "-c", run, LOTUS_TOOL_PROGRAM, LOTUS_MAP_PROBE, current.path()});
  CHECK(r.status == 1);
  CHECK(contains(r.err, "nothing was collected; it must run through a LOTUS_MAP_REGION"));
  CHECK(current.names() == std::vector<std::string>{"mapping_funcs_reports"});
}

TEST_CASE("the logs of the user's own run are left alone") {
  const place p;
  const temp_dir own;
  const std::string path = std::string(LOTUS_STAND_IN_COMMANDS) + ':' + std::getenv("PATH");
  const environment added{{"LOTUS_LOG_FILE", own.path() + "/lotustrace_log"},
                          {"PATH", path},
                          {"STAND_IN_LIBRARY", LOTUS_STAND_IN_ITT},
                          {"LOTUS_MAP_SLEEP_MS", "1"}};
  REQUIRE(p.run({"--collector", "vtune", "--runs", "1"}, added).status == 0);
  CHECK(own.names().empty());
#ifndef LOTUS_TEST_UNDER_SANITIZER
  if (!installed("valgrind")) return;
  REQUIRE(p.run({"--collector", "callgrind"}, added).status == 0);
  CHECK(own.names().empty());
#endif
}

TEST_CASE("what cannot be run is said in one line") {
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

TEST_CASE("a rate is between 1 and 100000 Hz") {
  for (const std::string command : {"run", "record"}) {
    for (const std::string rate : {"0.5", "nan", "0", "-1", "100001", "1kHz", ""}) {
      const result r = run({"map", command, "--rate", rate, "--", "/no/such/probe"});
      INFO(command << ' ' << rate);
      CHECK(r.status == 2);
      CHECK(contains(r.err, "'" + rate + "' is no rate between 1 and 100000 Hz"));
    }
  }
}

TEST_CASE("where sampling is forbidden, map run says what to change, after one launch") {
  const place p;
  std::vector<std::string> all{LOTUS_TOOL_PROGRAM,   "map", "run",   "--runs",  "3",   "-o",
                               p.folder + "/m.json", "--",  p.probe, "seccomp", "flow"};
  const result r = execute(all);
  CHECK(r.status == 1);
  CHECK(contains(r.err, "kernel.perf_event_paranoid"));
  CHECK(contains(r.err, "nothing was collected, because of what is said above\n"));
  CHECK_FALSE(contains(r.err, "run 2 of 3"));
  CHECK_FALSE(std::filesystem::exists(p.folder + "/m_reports"));
}

TEST_CASE("Ctrl-C leaves nothing running") {
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
