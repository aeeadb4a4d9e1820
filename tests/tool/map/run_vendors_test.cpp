// Tests lotus-tool map run with the collectors of vendors such as VTune and uProf: with the real
// ones, and with stand-ins for their libraries.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "map_test.hpp"
#include "run_place.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::map_test;
using namespace lotus::tool_test;

TEST_CASE("perf finds the functions of a region") {
  if (!sampling_allowed() || !installed("perf")) return;
  const place p;
  const result r = p.run({"--collector", "perf", "--runs", "1"});
  INFO(r.err);
  REQUIRE(r.status == 0);
  CHECK(p.functions("Beta").count("hot_beta|the probe") == 1);
  CHECK(p.functions("Beta").count("hot_gamma|the probe") == 0);
  CHECK(p.functions(awkward).count("hot_gamma|the probe") == 1);
}

TEST_CASE("perf works if the name of the directory for temporary files contains a comma") {
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

TEST_CASE("a region without a name of 1 to 254 bytes is reported, because it cannot be selected") {
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

// Valgrind cannot run programs with a sanitizer.
#ifndef LOTUS_TEST_UNDER_SANITIZER
TEST_CASE("callgrind counts the region only, with the same result every time") {
  if (!installed("valgrind")) return;
  const place p;
  const auto count = [&] {
    const result r = p.run({"--collector", "callgrind"});
    INFO(r.err);
    REQUIRE(r.status == 0);
    CHECK(p.functions("Beta").count("hot_gamma()|the probe") == 0);
    const auto json = parse_json(read_file(p.folder + "/m.json"));
    for (const auto& f : json["functions"]["Beta"].members()) {
      if (contains(f.name, "hot_beta")) return f.value["samples"].number();
    }
    return 0.0;
  };
  const double first = count();
  CHECK(first > 8e6);
  CHECK(count() == first);
}

TEST_CASE("callgrind reports without the name of an operation are ignored") {
  if (!installed("valgrind")) return;
  const place p;
  const result r = p.run({"--collector", "callgrind"}, {}, "fork_in_region");
  INFO(r.err);
  REQUIRE(r.status == 0);
  CHECK(contains(r.err, "ignored a report"));
  CHECK(parse_json(read_file(p.folder + "/m.json"))["op_to_func"].size() == 1);
  CHECK(p.functions("Forks").count("hot_gamma()|the probe") == 1);
  const result by_hand = p.run({"--collector", "callgrind"}, {}, "by_hand");
  CHECK(by_hand.status == 1);
  CHECK(contains(by_hand.err, "it must enter a LOTUS_MAP_REGION"));
}
#endif

TEST_CASE("vtune and AMDuProfCLI get the documented arguments") {
  const place p;
  const std::string path = std::string(LOTUS_STAND_IN_COMMANDS) + ':' + std::getenv("PATH");
  const result vtune = p.run(
      {"--collector", "vtune", "--runs", "2"},
      {{"PATH", path}, {"STAND_IN_LIBRARY", LOTUS_STAND_IN_ITT}, {"LOTUS_MAP_SLEEP_MS", "1"}});
  INFO(vtune.err);
  REQUIRE(vtune.status == 0);
  CHECK(p.functions("Beta") == names{"hot_Beta|probe", "shared<int, float>|libshared.so.1"});
  const auto json = parse_json(read_file(p.folder + "/m.json"));
  CHECK(json["functions"]["Beta"]["hot_Beta|probe"]["hits"].integer() == 2);
  CHECK(json["op_to_func"].has(awkward));
  const result uprof = p.run(
      {"--collector", "uprof", "--runs", "1", "--op", "Beta"},
      {{"PATH", path}, {"STAND_IN_LIBRARY", LOTUS_STAND_IN_UPROF}, {"LOTUS_MAP_SLEEP_MS", "1"}});
  INFO(uprof.err);
  REQUIRE(uprof.status == 0);
  CHECK(p.functions("Beta") == names{"hot_Beta|probe"});
}

TEST_CASE("the number of runs depends on the collector's sampling rate") {
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
  CHECK(contains(collect("vtune", "1000"), "run 1 of 1 of "));
  CHECK(sampling("1000") == "every 1 ms, told 1000 Hz\n");
  const std::string between = collect("vtune", "400");  // 400 Hz is an interval of 2.5 ms
  CHECK(contains(between, "warning: --rate 400: vtune takes a sample every 3 ms\n"));
  CHECK(contains(between, "run 1 of 7 of "));
  CHECK(contains(sampling("400"), "every 3 ms, told 333 Hz"));
  CHECK_FALSE(contains(collect("vtune", "100"), "warning"));
  CHECK(sampling("100") == "every 10 ms, told 100 Hz\n");
  const std::string uprof = collect("uprof", "100");
  CHECK(contains(uprof, "warning: --rate 100: uprof takes a sample every 1 ms\n"));
  CHECK(contains(uprof, "run 1 of 1 of "));
}

TEST_CASE("map run does not touch the logs of the user's own run") {
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
