// Tests lotus-tool map join, which shows the functions and the CPU time of operations by joining a
// run's logs with samples of a profiler.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "map_test.hpp"
#include "sampling/commands/map_samples.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::map_test;
using namespace lotus::tool_test;

TEST_CASE("a sample belongs to the innermost operation of its thread, to the nanosecond") {
  using namespace lotus::tool;
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_5",
           "SCrop,1100,100\nSFlip,1200,100\nSTransform,1100,300\nSBatchPreprocessed_0,1000,1000\n");
  located_samples samples;
  const std::uint32_t event = samples.event_id("cpu-clock");
  const std::uint32_t misses = samples.event_id("cache-misses");
  const std::uint32_t f = samples.function_id({"f|a", ""});
  const auto at = [&](std::int64_t time_ns, std::uint32_t tid, std::uint32_t what) {
    samples.samples.push_back({time_ns, 10, tid, f, what});
  };
  for (const std::int64_t time_ns : {1399, 1100, 1199, 1200, 1299, 1300, 1099, 1400}) {
    at(time_ns, 5, event);
  }
  at(1150, 6, event);  // belongs to a thread without a log
  at(1150, 5, misses);
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  joined_run result;
  join(find_runs(dir.path(), "lotustrace_log", diagnostics).front(), samples, result, diagnostics);
  CHECK(result.ops["Crop"].total.samples == 2);
  CHECK(result.ops["Flip"].total.samples == 2);
  CHECK(result.ops["Transform"].total.samples == 2);
  CHECK(result.outside.total.samples == 3);
  CHECK(result.ops["Crop"].counters["cache-misses"] == 10);
  CHECK(result.ops["Crop"].counters["cpu-clock"] == 20);
  CHECK(result.ops["Crop"].functions.at("f|a").total.samples == 2);
  CHECK(result.total().samples == 9);
}

TEST_CASE("only samples of CPU time count, and shares are shares of time") {
  using namespace lotus::tool;
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_5", "SCrop,1000,100\nSLoad,2000,100\n");
  located_samples samples;
  const std::uint32_t faults = samples.event_id("page-faults:u");
  const std::uint32_t clock = samples.event_id("cpu-clock:u");
  const std::uint32_t f = samples.function_id({"f|a", ""});
  const std::uint32_t g = samples.function_id({"g|a", ""});
  samples.samples = {{1010, 1, 5, g, faults},      {1020, 1, 5, g, faults},
                     {1030, 1, 5, g, faults},      {1040, 750'000, 5, f, clock},
                     {2010, 125'000, 5, f, clock}, {2020, 125'000, 5, f, clock}};
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  joined_run result;
  join(find_runs(dir.path(), "lotustrace_log", diagnostics).front(), samples, result, diagnostics);
  CHECK(result.event == "cpu-clock:u");
  const joined_op& crop = result.ops["Crop"];
  CHECK(crop.total.samples == 1);
  CHECK(cpu_ns(crop.total, result) == std::uint64_t{750'000});
  CHECK(crop.functions.count("g|a") == 0);
  CHECK(crop.counters.at("page-faults:u") == 3);
  std::ostringstream json;
  print_joined(result, print_as::json, json);
  const auto printed = parse_json(json.str());
  CHECK(printed["ops"]["Crop"]["share"].number() == Approx(0.75));
  CHECK(printed["ops"]["Load"]["share"].number() == Approx(0.25));
}

TEST_CASE("inlined functions are listed below the function that contains them") {
  using namespace lotus::tool;
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_5", "SCrop,1000,100\n");
  located_samples samples;
  const std::uint32_t event = samples.event_id("cpu-clock");
  const std::uint32_t own = samples.function_id({"f|a", ""});
  const std::uint32_t inner = samples.function_id({"f|a", "round"});
  samples.samples = {{1010, 1, 5, own, event}, {1020, 1, 5, inner, event}};
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  joined_run result;
  join(find_runs(dir.path(), "lotustrace_log", diagnostics).front(), samples, result, diagnostics);
  std::ostringstream json;
  print_joined(result, print_as::json, json);
  const auto printed = parse_json(json.str());
  CHECK(printed["ops"]["Crop"]["functions"]["f|a"].integer() == 2);
  CHECK(printed["ops"]["Crop"]["inlined"]["f|a"]["round"].integer() == 1);
  std::ostringstream table;
  print_joined(result, print_as::table, table);
  CHECK(contains(table.str(), "  inlined: round"));
}

TEST_CASE("join reports a program that was rebuilt after the run") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const std::string program = dir.path() + "/probe";
  std::filesystem::copy_file(LOTUS_MAP_PROBE, program);
  REQUIRE(execute({LOTUS_TOOL_PROGRAM, "map", "record", "-q", "--", program, "fork", "100"},
                  {{"LOTUS_LOG_FILE", dir.path() + "/run/lotustrace_log"}})
              .status == 0);
  const std::vector<std::string> join{"map", "join", "-q", dir.path() + "/run"};
  CHECK(run(join).err.empty());
  std::filesystem::copy_file(LOTUS_MAP_PROBE, dir.path() + "/rebuilt");
  std::filesystem::rename(dir.path() + "/rebuilt", program);
  CHECK(run(join).err.empty());  // the same build
  std::filesystem::copy_file(LOTUS_TOOL_PROGRAM, dir.path() + "/rebuilt");
  std::filesystem::rename(dir.path() + "/rebuilt", program);
  CHECK(run(join).err == "warning: " + program +
                             ": was built again since the recording, so its functions have no "
                             "names\n");
}

TEST_CASE("samples of perf are joined by thread and time") {
  if (!sampling_allowed() || !installed("perf")) return;
  const temp_dir dir;
  const std::string data = dir.path() + "/perf.data";
  REQUIRE(execute({"perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock:u", "-F",
                   "2000", "-o", data, "--", LOTUS_MAP_PROBE, "fork", "200"},
                  {{"LOTUS_LOG_FILE", dir.path() + "/run/lotustrace_log"}})
              .status == 0);
  const result joined = run({"map", "join", dir.path() + "/run", "--samples", data, "--json"});
  INFO(joined.err);
  REQUIRE(joined.status == 0);
  const auto json = parse_json(joined.out);
  const auto& functions = json["ops"]["Beta"]["functions"];
  CHECK(contains(functions.members().front().name, "hot_beta|lotus_map_probe"));
  CHECK(json["ops"]["Beta"]["cpu_ns"].integer() > 20'000'000);
  const std::string other = dir.path() + "/other.data";
  REQUIRE(execute({"perf", "record", "-q", "-e", "cpu-clock:u", "-o", other, "--", LOTUS_MAP_PROBE,
                   "fork", "50"})
              .status == 0);
  const result wrong = run({"map", "join", dir.path() + "/run", "--samples", other});
  CHECK(wrong.status == 1);
  CHECK(contains(wrong.err, "perf record -k CLOCK_MONOTONIC"));
}

TEST_CASE("join passes on perf's message about a damaged file, and Ctrl-C ends it") {
  const temp_dir dir;
  const std::string data = dir.file("perf.data", "PERFILE2 and no more");
  const std::string logs = dir.path() + "/run";
  dir.file("run/lotustrace_log_worker_pid_5", "SCrop,1100,100\n");
  const auto join_with = [&](const std::string& perf) {
    const std::string command = dir.file("bin/perf", "#!/bin/sh\n" + perf);
    std::filesystem::permissions(command, std::filesystem::perms::owner_all);
    return execute({LOTUS_TOOL_PROGRAM, "map", "join", logs, "--samples", data},
                   {{"PATH", dir.path() + "/bin:/usr/bin:/bin"}});
  };
  const result damaged = join_with(
      "echo ' 5/5  1.500000000:  10  cpu-clock:  7f f (/a)'\n"
      "echo '0x4e40 [0]: failed to process type: 0 [Invalid argument]' >&2\n"
      "echo '# done'\nexit 234\n");
  CHECK(damaged.status == 1);
  CHECK(damaged.err == "lotus-tool: " + data +
                           ": perf report cannot read it: 0x4e40 [0]: failed to process type: 0 "
                           "[Invalid argument]\n");
  CHECK(contains(join_with("exit 3\n").err, data + ": perf report cannot read it: status 3\n"));
  const result interrupted = join_with("kill -INT $PPID\nsleep 20\n");
  CHECK(interrupted.status == 128 + SIGINT);
  CHECK(interrupted.err.empty());
}

TEST_CASE("samples outside of scopes are listed by thread, with the operations that may wait") {
  using namespace lotus::tool;
  const temp_dir dir;
  // Thread 5 is in Decode for 100 ms and runs for 10 ms of these; then it sleeps while no other
  // thread runs. Thread 6 is in Decode too.
  dir.file("lotustrace_log_worker_pid_5",
           "SInner,140000000,10000000\nSDecode,100000000,100000000\nSSleep,300000000,100000000\n");
  dir.file("lotustrace_log_worker_pid_6", "SDecode,100000000,100000000\n");
  located_samples samples;
  const std::uint32_t clock = samples.event_id("cpu-clock");
  const std::uint32_t f = samples.function_id({"f|a", ""});
  const auto burn = [&](std::uint32_t tid, std::int64_t from_ms, std::int64_t to_ms) {
    for (std::int64_t ms = from_ms; ms < to_ms; ++ms) {
      samples.samples.push_back({ms * 1'000'000, 1'000'000, tid, f, clock});
    }
  };
  burn(5, 100, 110);  // inside Decode
  burn(5, 220, 230);  // outside of all operations
  burn(71, 100, 200);
  burn(72, 150, 200);
  burn(80, 250, 260);
  burn(81, 260, 261);
  samples.thread_names = {{71, "av:h264:df0"}, {72, "av:h264:df1"}, {81, "lotus-drain"}};
  samples.reaches(0);
  samples.reaches(390'000'000);
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  joined_run result;
  join(find_runs(dir.path(), "lotustrace_log", diagnostics).front(), samples, result, diagnostics);
  const joined_op& decode = result.ops["Decode"];
  CHECK(decode.wall_ns == 190'000'000);  // time of two threads, without the operation Inner
  CHECK(decode.meanwhile_sum.value == 290'000'000);
  CHECK(may_wait_for_others(decode, result));
  const auto meanwhile = decode.meanwhile.sorted();
  REQUIRE(meanwhile.size() == 1);
  // Each sample counts once, although two threads are in Decode.
  CHECK(meanwhile[0].total.value == 150'000'000);
  CHECK(meanwhile[0].name() == "av:h264:df*");
  CHECK(result.ops["Sleep"].wall_ns == 90'000'000);  // up to the last sample
  CHECK_FALSE(may_wait_for_others(result.ops["Sleep"], result));
  const auto outside = result.outside_threads.sorted();
  REQUIRE(outside.size() == 4);
  CHECK(outside[0].total.samples == 150);
  CHECK(outside[0].tids == std::set<std::uint32_t>{71, 72});
  std::ostringstream table;
  print_joined(result, print_as::table, table);
  INFO(table.str());
  std::size_t at = 0;
  for (const char* const group : {"2 threads named av:h264:df*, without operations",
                                  "1 thread without a name, without operations",
                                  "1 thread without a name", "1 thread of Lotus (lotus-drain)"}) {
    INFO(group);
    at = table.str().find(group, at + 1);
    CHECK(at != std::string::npos);
  }
  CHECK(
      contains(table.str(),
               "\nDecode: 190.0 ms wall, 10.00 ms CPU; meanwhile ran 2 threads named av:h264:df*, "
               "without operations, for 150.0 ms. Decode may wait for these threads.\n"));
  CHECK_FALSE(contains(table.str(), "\nSleep: "));
  std::ostringstream text;
  print_joined(result, print_as::json, text);
  const auto json = parse_json(text.str());
  CHECK(json["ops"]["Decode"]["wall_ns"].integer() == 190'000'000);
  CHECK(json["ops"]["Decode"]["may_wait_for_others"].boolean());
  CHECK_FALSE(json["ops"]["Sleep"]["may_wait_for_others"].boolean());
  const auto& group = json["outside"]["threads"][0];
  CHECK(group["name"].text() == "av:h264:df*");
  CHECK(group["threads"].integer() == 2);
  CHECK_FALSE(group["scopes"].boolean());
  CHECK(group["cpu_ns"].integer() == 150'000'000);
}

TEST_CASE("a sample in an operation of another loader belongs to that operation") {
  using namespace lotus::tool;
  const temp_dir dir;
  dir.file(".lotus_info_7_1", "pid 7\nparent 1\nhost Snode\nthread 5 Sloop\n");
  dir.file("lotustrace_log_worker_pid_5", "SCrop,1000,100\n");
  dir.file("val/lotustrace_log_worker_pid_5", "SFlip,2000,100\n");
  const std::string perf =
      dir.file("bin/perf",
               "#!/bin/sh\nif [ \"$1\" = report ]; then\n"
               "echo '# reference time: today = 0.0 (TOD) = 0.0 (monotonic)'\nelse\n"
               "echo ' a 1/2 thread  7/5  0.000001050:  10 cpu-clock:u:  7f f (/bin/a)'\n"
               "echo '          pool7  7/5  0.000002050:  10 cpu-clock:u:  7f f (/bin/a)'\n"
               "echo '             :8  7/8  0.000002051:  30 cpu-clock:u:  7f f (/bin/a)'\nfi\n");
  std::filesystem::permissions(perf, std::filesystem::perms::owner_all);
  const std::string data = dir.file("perf.data", "PERFILE2 and no more");
  const result r =
      execute({LOTUS_TOOL_PROGRAM, "map", "join", dir.path(), "--samples", data, "--json"},
              {{"PATH", dir.path() + "/bin:/usr/bin:/bin"}});
  INFO(r.err);
  REQUIRE(r.status == 0);
  const auto json = parse_json(r.out);
  CHECK(json["ops"]["Crop"]["cpu_ns"].integer() == 10);
  CHECK(json["ops"]["Flip"]["cpu_ns"].integer() == 10);
  CHECK(json["outside"]["cpu_ns"].integer() == 30);
  // perf has no name for the thread ":8".
  CHECK(json["outside"]["threads"][0]["name"].text().empty());
}

TEST_CASE("both samplers find the threads for which a decoder waits in a real run") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  // If other programs leave the decoder's threads too little CPU time, the run shows no wait for
  // them, so it is recorded again. Returns "" if they always do.
  const auto record = [&dir](std::vector<std::string> command, const std::string& name) {
    command.insert(command.end(), {"--", LOTUS_MAP_PROBE, "decoder", "200"});
    for (int time = 0; time < 8; ++time) {
      std::string folder = dir.path() + '/' + name + std::to_string(time);
      const auto begin = std::chrono::steady_clock::now();
      REQUIRE(execute(command, {{"LOTUS_LOG_FILE", folder + "/lotustrace_log"}}).status == 0);
      const auto took = std::chrono::steady_clock::now() - begin;
      if (took < std::chrono::milliseconds(1600)) return folder;
    }
    lotus_test::skip("other programs use the CPUs");
    return std::string();
  };
  const std::string data = dir.path() + "/perf.data";
  std::vector<std::vector<std::string>> joins;
  const std::string own = record({LOTUS_TOOL_PROGRAM, "map", "record", "-q"}, "own");
  if (!own.empty()) joins.push_back({"map", "join", own});
  if (installed("perf")) {
    const std::string folder = record({"perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-e",
                                       "cpu-clock:u", "-F", "1000", "-o", data},
                                      "perf");
    if (!folder.empty()) joins.push_back({"map", "join", folder, "--samples", data});
  }
  for (std::vector<std::string>& join : joins) {
    const result table = run(join);
    INFO(table.err << table.out);
    REQUIRE(table.status == 0);
    CHECK(contains(table.out, "  2 threads named av:h264:df*, without operations"));
    CHECK(contains(table.out, "\nDecode: "));
    CHECK(
        contains(table.out, "meanwhile ran 2 threads named av:h264:df*, without operations, for"));
    CHECK_FALSE(contains(table.out, "\nSleep: "));
    CHECK_FALSE(contains(table.out, "\nBurn: "));
    join.emplace_back("--json");
    const auto json = parse_json(run(join).out);
    for (const std::string name : {"Decode", "Sleep", "Burn"}) {
      CHECK(json["ops"][name]["wall_ns"].integer() > 150'000'000);
      CHECK(json["ops"][name]["may_wait_for_others"].boolean() == (name == "Decode"));
    }
    CHECK(json["outside"]["threads"][0]["name"].text() == "av:h264:df*");
  }
}

TEST_CASE("a run without samples is bad input") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_5", "SCrop,1100,100\n");
  const result r = run({"map", "join", dir.path()});
  CHECK(r.status == 1);
  CHECK(contains(r.err, "no samples next to the logs"));
}
