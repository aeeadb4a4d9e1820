// Tests lotus-tool map with programs whose threads, processes and shared objects start and end
// during the run.
#include <sched.h>
#include <unistd.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "map_test.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::map_test;
using namespace lotus::tool_test;

namespace {

using names = std::set<std::string>;
using mapping = std::map<std::string, names>;

/// Returns the functions, without modules, that have at least a fifth of an operation's samples.
mapping functions_of(const std::vector<std::string>& probe, const std::string& collector,
                     const environment& added = {}) {
  const temp_dir dir;
  std::vector<std::string> all{LOTUS_TOOL_PROGRAM, "map",     "run", "-q",
                               "--collector",      collector, "-o",  dir.path() + "/m.json",
                               "--runs",           "2",       "--",  LOTUS_MAP_HARD_PROBE};
  all.insert(all.end(), probe.begin(), probe.end());
  const result r = execute(all, added);
  INFO(r.err);
  CHECK(r.status == 0);
  mapping found;
  const auto json = parse_json(read_file(dir.path() + "/m.json"));
  for (const auto& op : json["functions"].members()) {
    for (const auto& function : op.value.members()) {
      const std::string key = function.name;
      const std::string name = key.substr(0, key.find('|'));
      if (function.value["share"].number() < 0.2) continue;
      found[op.name].insert(name.substr(name.rfind(':') + 1));
    }
  }
  return found;
}

mapping functions_of(const std::vector<std::string>& probe) {
  return functions_of(probe, "builtin");
}

bool has_two_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_ISSET(0, &set) && CPU_ISSET(1, &set);
}

}  // namespace

TEST_CASE("the built-in collector samples all threads, on any CPU and however they were started") {
  if (!sampling_allowed()) return;
  if (has_two_processors()) {
    CHECK(functions_of({"pinned"}) == mapping{{"Op", {"hot_alpha", "hot_beta"}}});
  }
  CHECK(functions_of({"older_thread"}) == mapping{{"Op", {"hot_alpha", "hot_beta"}}});
}

TEST_CASE("functions in loaded and unloaded shared objects have names") {
  if (!sampling_allowed()) return;
  CHECK(functions_of({"objects", LOTUS_MAP_OBJECT_FIRST, LOTUS_MAP_OBJECT_SECOND}) ==
        mapping{{"First", {"hot_first"}}, {"Second", {"hot_second"}}, {"Within", {"hot_first"}}});
}

TEST_CASE("the functions of nested and simultaneous regions are kept apart") {
  const mapping nested{{"Outer", {"hot_alpha", "hot_gamma"}}, {"Inner", {"hot_beta"}}};
  const environment cold{{"LOTUS_MAP_WARMUP", "0"}};
// Valgrind cannot run programs with a sanitizer.
#ifndef LOTUS_TEST_UNDER_SANITIZER
  if (installed("valgrind")) {
    const mapping counted{{"Outer", {"hot_alpha()", "hot_gamma()"}}, {"Inner", {"hot_beta()"}}};
    CHECK(functions_of({"nested"}, "callgrind", cold) == counted);
  }
#endif
  if (!sampling_allowed()) return;
  CHECK(functions_of({"nested"}, "builtin", cold) == nested);
  CHECK(functions_of({"neighbours"}) == mapping{{"One", {"hot_alpha"}}, {"Other", {"hot_beta"}}});
}

// ThreadSanitizer allows no threads in the forked child of a program with threads.
#ifndef __SANITIZE_THREAD__

TEST_CASE("forked processes are sampled, however they end") {
  if (!sampling_allowed()) return;
  CHECK(functions_of({"forks"}) ==
        mapping{{"Around", {"hot_alpha"}}, {"Within", {"hot_beta"}}, {"Last", {"hot_gamma"}}});
}

TEST_CASE("a process forked while threads begin to record does not wait for them") {
  const temp_dir dir;
  const std::string collector = sampling_allowed() ? "builtin" : "none";
  for (int i = 0; i < 60; ++i) {
    const result r =
        execute({LOTUS_MAP_HARD_PROBE, "fork_at_once"}, {{"LOTUS_COLLECTOR", collector},
                                                         {"LOTUS_MAP_WARMUP", "0"},
                                                         {"LOTUS_LOG_FILE", dir.path() + "/log"}});
    REQUIRE(r.out == "child 0\n");
  }
}

TEST_CASE("samples of a forked process are stored with the logs") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const temp_dir elsewhere;
  const std::string run = "cd '" + elsewhere.path() + "' && exec " + LOTUS_MAP_HARD_PROBE;
  execute({"/bin/sh", "-c", run + " forks"},
          {{"LOTUS_COLLECTOR", "builtin"}, {"LOTUS_LOG_FILE", dir.path() + "/log"}});
  CHECK(elsewhere.names().empty());
  std::size_t files = 0;
  for (const std::string& name : dir.names()) files += contains(name, ".lotus_samples_") ? 1 : 0;
  CHECK(files == 2);
}

#endif

TEST_CASE("a program whose first scope is in a fork handler does not hang, and records") {
  for (const char* handler : {"prepare", "parent", "child"}) {
    const temp_dir dir;
    const result r = execute({LOTUS_MAP_HARD_PROBE, "fork_handler", handler},
                             {{"LOTUS_LOG_FILE", dir.path() + "/log"}});
    INFO(handler);
    CHECK(r.out == "child 0\n");
    std::string logs;
    for (const std::string& name : dir.names()) {
      if (name.front() != '.') logs += read_file(dir.path() + '/' + name);
    }
    CHECK(contains(logs, "Sparent,"));
    CHECK(contains(logs, "Schild,"));
  }
}

TEST_CASE("leaving a region in its warm-up is reported, and after detach blocks run once") {
  const result r =
      execute({LOTUS_MAP_HARD_PROBE, "left"}, {{"LOTUS_COLLECTOR", "itt"},
                                               {"LOTUS_MAP_SLEEP_MS", "1"},
                                               {"INTEL_LIBITTNOTIFY64", LOTUS_STAND_IN_ITT}});
  CHECK(r.out == "left 1\ndetached 1\n");
  CHECK(r.err ==
        "lotus: region Left was left during its warm-up, by break, return or an exception, so "
        "nothing was collected; set LOTUS_MAP_WARMUP=0 to collect from its first pass\n");
}

TEST_CASE("invalid numbers in the environment are reported") {
  const result r =
      execute({LOTUS_MAP_HARD_PROBE, "left"}, {{"LOTUS_COLLECTOR", "itt"},
                                               {"LOTUS_MAP_PASSES", "0"},
                                               {"LOTUS_MAP_WARMUP", "-1"},
                                               {"LOTUS_MAP_SLEEP_MS", "1"},
                                               {"INTEL_LIBITTNOTIFY64", LOTUS_STAND_IN_ITT}});
  CHECK(contains(r.err, "LOTUS_MAP_PASSES=0: must be a number from 1; taken as 1\n"));
  CHECK(contains(r.err, "LOTUS_MAP_WARMUP=-1: must be a number from 0; taken as 4\n"));
}

TEST_CASE("perf that has closed its control pipe is abandoned with one message") {
  int control[2];
  int answers[2];
  REQUIRE(::pipe(control) == 0);
  REQUIRE(::pipe(answers) == 0);
  ::close(control[0]);
  const std::string variable =
      "fd:" + std::to_string(control[1]) + ',' + std::to_string(answers[0]);
  const result r = execute({LOTUS_MAP_HARD_PROBE, "left"}, {{"LOTUS_PERF_CONTROL", variable},
                                                            {"LOTUS_COLLECTOR_TIMEOUT_MS", "50"},
                                                            {"LOTUS_MAP_WARMUP", "0"}});
  CHECK(r.out == "left 1\ndetached 1\n");
  CHECK(r.err == "lotus: the perf collector does not answer; the program goes on without it\n");
  for (const int fd : {control[1], answers[0], answers[1]}) ::close(fd);
}
